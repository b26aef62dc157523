package process

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

// TestKlogLogger gives klog a logger of the program's own before a member joins: it gets the
// lines of strangers, as before and after, and the member's log those of the member.
func TestKlogLogger(t *testing.T) {
	for _, contextual := range []bool{false, true} {
		for _, writes := range []bool{false, true} {
			t.Run(fmt.Sprintf("contextual=%t writes=%t", contextual, writes), func(t *testing.T) {
				var own syncBuffer
				options := []klog.LoggerOption{klog.ContextualLogger(contextual)}
				if writes {
					options = append(options, klog.WriteKlogBuffer(func(line []byte) { _, _ = own.Write(line) }))
				}
				logger := funcr.New(func(prefix, args string) { fmt.Fprintln(&own, prefix, args) }, funcr.Options{LogCaller: funcr.All})
				klog.SetLoggerWithOptions(logger, options...)
				t.Cleanup(klog.ClearLogger)
				want := linesOf(&own)

				var log syncBuffer
				var crash error
				m, err := Join("member", Flags{}, &log, func(err error) { crash = err })
				require.NoError(t, err)
				<-m.Go(func() {
					logLines()
					klog.Fatal("fatal of member")
				})
				assert.Equal(t, want, linesOf(&own), "what the program's logger gets beside a member")
				m.Leave()
				assert.Equal(t, want, linesOf(&own), "what it gets afterwards")
				for _, line := range []string{`a line 1`, `err="an error" n=2`, `"a line" n=3`, `n=4`} {
					assert.Contains(t, log.String(), line)
				}
				assert.Equal(t, 5, strings.Count(log.String(), " kloglogger_test.go:"), "lines with their place: %s", &log)
				assert.ErrorContains(t, crash, "fatal of member")
			})
		}
	}
}

// linesOf returns what logLines writes to the buffer.
func linesOf(own *syncBuffer) string {
	own.mu.Lock()
	own.b.Reset()
	own.mu.Unlock()
	logLines()
	text := own.String()
	if i := strings.Index(text, "] a line 1"); i > 0 { // without the time of a formatted line
		text = text[i:]
	}
	return text
}

// logLines logs in each way that klog offers.
func logLines() {
	klog.Info("a line 1")
	klog.ErrorS(errors.New("an error"), "a line", "n", 2)
	klog.InfoS("a line", "n", 3)
	klog.LoggerWithName(klog.FromContext(context.Background()), "name").Info("a line", "n", 4)
}

// TestKlogLoggerSetMeanwhile keeps a logger that the program sets while a member is there.
func TestKlogLoggerSetMeanwhile(t *testing.T) {
	klog.SetLogger(logr.Discard())
	t.Cleanup(klog.ClearLogger)
	m := join(t, "member", Flags{})
	var own syncBuffer
	klog.SetLogger(funcr.New(func(prefix, args string) { fmt.Fprintln(&own, prefix, args) }, funcr.Options{}))
	m.Leave()
	klog.Info("a line")
	assert.Contains(t, own.String(), "a line")
}
