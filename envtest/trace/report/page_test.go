package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/htmlpage"
)

func page(t *testing.T, p Page) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, WriteHTML(&out, p))
	return out.String()
}

// block returns what is between two texts of a page.
func block(t *testing.T, text, begin, end string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, begin)
	require.True(t, ok, "no %s", begin)
	inside, _, ok := strings.Cut(rest, end)
	require.True(t, ok, "no %s", end)
	return inside
}

const (
	dataBegin    = `<script type="application/json" id="data">`
	programBegin = "<script>"
	scriptEnd    = "</script>"
)

var (
	tags    = regexp.MustCompile(`(?i)<(script|img|iframe|object|link|base|svg|style)\b`)
	closing = regexp.MustCompile(`(?i)</(script|style)`)
)

// elements are the elements of a page that can run, load or end something, in order.
func elements(text string) []string {
	var all []string
	for _, m := range slices.Concat(tags.FindAllStringSubmatch(text, -1), closing.FindAllStringSubmatch(text, -1)) {
		all = append(all, strings.ToLower(m[0]))
	}
	return all
}

// hostile is text that would run if it got into the page as more than text.
const hostile = "</script><img src=x onerror=alert(1)><!--<script>\u2028'\"`&{{.Data}}"

// hostileRun has hostile text wherever text can be.
func hostileRun() Run {
	err := errors.New(hostile)
	object := trace.Object{Kind: hostile, Namespace: hostile, Name: hostile, Revision: 1, Digest: hostile}
	events := []trace.Event{
		trace.Note{Text: hostile},
		trace.Note{Text: "# " + hostile},
		trace.Stage{Name: hostile, Err: err},
		trace.Signal{Name: hostile},
		trace.Hook{Name: hostile, Kind: hostile, Err: err},
		trace.Check{Name: hostile, Endpoint: hostile, Reason: hostile},
		trace.Request{Method: hostile, URI: hostile, Verb: hostile, User: hostile, UserAgent: hostile, Server: hostile, Err: err},
		trace.Fault{Action: hostile, Rule: hostile, Point: hostile, OperationPhase: hostile, Server: hostile, Verb: hostile, Resource: hostile, Namespace: hostile, Name: hostile, Key: hostile, Caller: hostile, Err: err},
		trace.Answer{Client: hostile, Method: hostile, URI: hostile, Reason: hostile, Objects: []trace.Object{object}, Err: err},
		trace.WatchEvent{Client: hostile, URI: hostile, Type: hostile, Reason: hostile, Object: object, Err: err},
		trace.Write{Key: hostile},
		trace.Turn{Point: hostile, Phase: hostile, Server: hostile, Verb: hostile, Resource: hostile, Namespace: hostile, Name: hostile, Key: hostile, Caller: hostile},
	}
	run := Run{Name: hostile, Failed: &Failure{Text: hostile}}
	for i, e := range events {
		run.Records = append(run.Records, trace.Record{Seq: int64(i + 1), ControlPlane: hostile, Server: hostile, Event: e})
	}
	return run
}

func TestEscaping(t *testing.T) {
	plain := elements(page(t, Page{Title: "plain", Runs: []Run{{Name: "story", Records: story()}}}))
	other := hostileRun()
	other.Records = other.Records[1:]
	text := page(t, Page{Title: hostile, Runs: []Run{hostileRun(), other}})
	assert.Equal(t, plain, elements(text), "hostile text adds no element and ends none")
	assert.NotContains(t, text, "onerror=alert(1)>")

	var data pageData
	require.NoError(t, json.Unmarshal([]byte(block(t, text, dataBegin, scriptEnd)), &data))
	assert.Equal(t, hostile, data.Runs[0].Name, "and it is still there, as text")
	assert.Contains(t, data.Runs[0].Strings, hostile)
	assert.Equal(t, hostile, data.Runs[0].Failed.Text)
	assert.NotNil(t, data.Divergence)

	raw := strings.Replace(text, `\u003c/script\u003e\u003cimg `, "</script><img ", 1)
	assert.NotEqual(t, plain, elements(raw), "the comparison notices text that is not escaped")
}

var addresses = regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s"'<>)]*`)

// loads are ways in which a page asks for something.
var loads = regexp.MustCompile(`(?i)\bsrc=|@import|url\(|\bfetch\(|XMLHttpRequest|\bimport\b|WebSocket|EventSource|sendBeacon`)

// The page asks for nothing: not by itself, and its policy would not let it.
func TestSelfContained(t *testing.T) {
	text := page(t, Page{Runs: []Run{{Name: "story", Records: story()}}})
	for _, a := range addresses.FindAllString(text, -1) {
		assert.Equal(t, "http://www.w3.org/2000/svg", a, "it is a namespace")
	}
	assert.Empty(t, loads.FindAllString(text, -1))
	assert.NotEmpty(t, loads.FindAllString(`<img src="x">`, -1))
	policy := block(t, text, `http-equiv="Content-Security-Policy" content="`, `">`)
	policy = strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy)
	assert.True(t, strings.HasPrefix(policy, "default-src 'none';"), policy)
	assert.NotContains(t, policy, "unsafe")
	assert.Contains(t, policy, "script-src "+htmlpage.Hash(block(t, text, programBegin, scriptEnd))+";", "it allows this program")
	assert.Contains(t, policy, "style-src "+htmlpage.Hash(block(t, text, "<style>", "</style>"))+";")
}

// Text gets into the page as text: the program has no other way.
func TestProgramMakesNoHTML(t *testing.T) {
	program, err := program()
	require.NoError(t, err)
	for _, way := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc"} {
		assert.NotContains(t, program, way)
	}
	assert.NotContains(t, program, "console.log")
}

// What the program looks up by id is in the page, and what the page names is used.
func TestProgramKnowsThePage(t *testing.T) {
	template, err := files.ReadFile("page/page.html.tmpl")
	require.NoError(t, err)
	style, err := htmlpage.Style(files)
	require.NoError(t, err)
	program, err := program()
	require.NoError(t, err)
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(`\bid="([a-z]+)"`).FindAllStringSubmatch(string(template), -1) {
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`byId\("([a-z]+)"\)`).FindAllStringSubmatch(program, -1) {
		assert.True(t, ids[m[1]], "no element has the id %s", m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^#([a-z]+)`).FindAllStringSubmatch(style, -1) {
		assert.True(t, ids[m[1]], "the style of %s, which is no id", m[1])
	}
	for _, kind := range kinds {
		assert.Regexp(t, `(?m)^  `+kind+`: "M`, program, "each kind has a shape")
	}
	for _, tone := range tones {
		assert.Contains(t, style, "--"+tone+":")
		assert.Contains(t, style, "--"+tone+"-fill:")
	}
	assert.Equal(t, len(relationNames), int(changed)+1)
}

var colorPairs = regexp.MustCompile(`--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`)

// Text has the contrast that WCAG asks for (4.5), and what is not text too (3).
func TestContrast(t *testing.T) {
	style, err := htmlpage.Style(files)
	require.NoError(t, err)
	colors := [2]map[string]string{{}, {}}
	for _, m := range colorPairs.FindAllStringSubmatch(style, -1) {
		colors[0][m[1]], colors[1][m[1]] = m[2], m[3]
	}
	for theme, c := range colors {
		require.Greater(t, len(c), 15)
		enough := func(least float64, front, back string) {
			assert.GreaterOrEqual(t, contrast(t, c[front], c[back]), least, "theme %d: %s on %s", theme, front, back)
		}
		for _, back := range []string{"back", "stripe", "group", "plain-fill", "good-fill", "bad-fill", "waiting-fill", "strong-fill"} {
			enough(7, "text", back)
		}
		for _, back := range []string{"back", "stripe", "group"} {
			enough(4.5, "muted", back)
			for _, tone := range tones {
				enough(3, tone, back)
			}
			enough(3, "select", back)
		}
		for _, tone := range tones {
			enough(3, tone, tone+"-fill")
		}
		enough(4.5, "back", "bad") // the flag of the failed step
		enough(4.5, "back", "select")
	}
	assert.InDelta(t, 21, contrast(t, "#000000", "#ffffff"), 0.01)
}

// contrast is the ratio that WCAG 2 defines.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, color string) float64 {
	t.Helper()
	var r, g, b int
	_, err := fmt.Sscanf(color, "#%02x%02x%02x", &r, &g, &b)
	require.NoError(t, err, color)
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// linear is a channel of a colour as WCAG counts light.
func linear(channel int) float64 {
	c := float64(channel) / 255
	if c <= 0.04045 {
		return c / 12.92
	}
	return math.Pow((c+0.055)/1.055, 2.4)
}

// ticks is a run of notes, one a second.
func ticks(texts ...string) []trace.Record {
	var recs []trace.Record
	for i, text := range texts {
		recs = append(recs, trace.Record{Seq: int64(i + 1), Elapsed: time.Duration(i) * time.Second, Event: trace.Note{Text: text}})
	}
	return recs
}

func TestPartingOnThePage(t *testing.T) {
	turn := trace.Record{Seq: 100, Event: trace.Turn{Number: 1, Point: "x"}} // which is not in the canonical trace
	for _, c := range []struct {
		a, b  []trace.Record
		want  [2]int
		words string
	}{
		{ticks("a", "b", "c"), append([]trace.Record{turn}, ticks("a", "x", "c")...), [2]int{1, 2}, "first run and second run do the same up to line 1"},
		{ticks("a", "b", "c"), ticks("a", "b"), [2]int{2, -1}, "but second run ends"},
		{ticks("a"), ticks("b"), [2]int{0, 0}, "differ from the beginning"},
	} {
		data, err := Page{Runs: []Run{{Records: c.a}, {Records: c.b}}}.data()
		require.NoError(t, err)
		var d pageData
		require.NoError(t, json.Unmarshal(data, &d))
		require.NotNil(t, d.Divergence)
		assert.Equal(t, c.want, d.Divergence.Events)
		assert.Contains(t, d.Divergence.Words, c.words)
	}
	data, err := Page{Runs: []Run{{Records: story()}, {Records: story()}}}.data()
	require.NoError(t, err)
	assert.NotContains(t, string(data), `"divergence"`)
	assert.Contains(t, string(data), `"name":"second run"`)
}

// In a bubble, the page shows virtual time.
func TestVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := trace.NewRecorder("server-1", 0)
		time.Sleep(time.Hour)
		r.Record(trace.Signal{Name: "HasBeenReady"})
		time.Sleep(5 * time.Nanosecond)
		r.Record(trace.Note{Text: "later"})
		d, err := Run{Records: r.Records()}.data()
		require.NoError(t, err)
		assert.Equal(t, int64(time.Hour), d.Events[0][0])
		assert.Equal(t, int64(5), d.Events[1][0])
	})
}

type fullWriter struct{}

var errFull = errors.New("disk full")

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrorsSurface(t *testing.T) {
	require.ErrorIs(t, WriteHTML(fullWriter{}, Page{Runs: []Run{{Records: story()}}}), errFull)
	require.ErrorIs(t, WritePerfetto(fullWriter{}, story()), errFull)
}
