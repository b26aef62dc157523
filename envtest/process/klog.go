package process

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strconv"

	"k8s.io/klog/v2"

	"snowglobe.test/internal/redact"
)

// takeOverKlog has klog write to logRouter. Clients in the process may log
// meanwhile, so what klog does not guard is left alone as far as it is set the
// usual way.
func takeOverKlog(verbosity int) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	set := func(name, value string) error {
		if flags.Lookup(name).Value.String() == value {
			return nil
		}
		return flags.Set(name, value)
	}
	if flags.Lookup("logtostderr").Value.String() == "true" {
		onGiveBack(func() {
			klog.LogToStderr(true)
			klog.SetOutput(os.Stderr) // for a later --logtostderr=false: klog would write to nil
		})
	} else {
		outputs := klogOutputs()
		onGiveBack(func() {
			for severity, w := range outputs {
				klog.SetOutputBySeverity(severity, w)
			}
		})
	}
	// The program may have its own lines be as verbose as it likes.
	if program, err := strconv.Atoi(flags.Lookup("v").Value.String()); err == nil {
		verbosity = max(verbosity, program)
	}
	for name, value := range map[string]string{
		"alsologtostderr": "false", "stderrthreshold": "4" /* above FATAL */, "v": strconv.Itoa(verbosity),
	} {
		// A client may change them too, by /debug/flags.
		before := flags.Lookup(name).Value.String()
		onGiveBack(func() { _ = set(name, before) }) // it has had it
		if err := set(name, value); err != nil {
			return fmt.Errorf("take over klog: set %s: %w", name, err)
		}
	}
	// klog writes a line to its severity's output and all below, or to the first only.
	klog.SetOutput(io.Discard)
	klog.SetOutputBySeverity("INFO", logRouter{})
	toStderr := flags.Lookup("logtostderr").Value
	klog.SetOutputBySeverity("FATAL", fatalRouter{io.Discard, toStderr})
	if flags.Lookup("one_output").Value.String() == "true" {
		klog.SetOutput(logRouter{})
		klog.SetOutputBySeverity("FATAL", fatalRouter{logRouter{}, toStderr})
	}
	if routed := takeOverLogger(verbosity); !routed {
		klog.LogToStderr(false) // else it would only decide who gets the stack after a fatal line
	}
	return nil
}

// klogOutputs is where klog writes the lines of each severity. klog does not tell, and to
// restore the state that it captures, as it offers, writes without a lock what every
// informer of a stranger reads.
func klogOutputs() map[string]io.Writer {
	file := reflect.ValueOf(klog.CaptureState()).Elem().FieldByName("file")
	file = reflect.NewAt(file.Type(), file.Addr().UnsafePointer()).Elem() // it is not exported
	outputs := map[string]io.Writer{}
	for i, severity := range []string{"INFO", "WARNING", "ERROR", "FATAL"} { // klog's order
		outputs[severity], _ = file.Index(i).Interface().(io.Writer) // nil if not written to yet
	}
	return outputs
}

// logRouter writes a log line to the log of the member whose goroutine logs it, and
// a stranger's to stderr, as klog does by default, but without credentials. What a timer's
// goroutine logs may be a member's, too.
type logRouter struct{}

// Write implements io.Writer.
func (logRouter) Write(line []byte) (int, error) {
	m := current()
	if m == nil {
		if m = shared.onlyTimers.Load(); m != nil && !ofTimer() {
			m = nil
		}
	}
	if m == nil {
		if _, err := os.Stderr.WriteString(redact.Text(string(line))); err != nil {
			return 0, err
		}
		return len(line), nil
	}
	if _, err := m.log.Write(withoutStacks(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// ofTimer reports whether a timer has started this goroutine. One whose stack is too long to
// tell is none: a timer's begins with what it calls.
func ofTimer() bool {
	stack := make([]byte, stackBytes)
	return bytes.Contains(stack[:runtime.Stack(stack, false)], []byte("\ncreated by time.goFunc"))
}

// withoutStacks cuts the stacks of all goroutines, which klog writes after a fatal
// line, to the first, with the one that wrote the line. All are megabytes, and
// would drive the line out of the log.
func withoutStacks(line []byte) []byte {
	if len(line) > stackBytes && bytes.HasPrefix(line, []byte("goroutine ")) {
		return append(line[:stackBytes:stackBytes], "\n... (more goroutines)\n"...)
	}
	return line
}

// fatalRouter keeps the first fatal line of a member, for the report of its crash, and its stack from
// the terminal: klog writes one to stderr between the line and all stacks, unless it logs to stderr.
// It holds its lock from the one to the other.
type fatalRouter struct {
	next     io.Writer
	toStderr flag.Value // klog's setting, which the lock guards
}

// Write implements io.Writer.
func (r fatalRouter) Write(line []byte) (int, error) {
	if m := current(); m != nil {
		stacks := bytes.HasPrefix(line, []byte("goroutine "))
		if text := string(bytes.TrimSpace(line)); !stacks {
			m.fatal.CompareAndSwap(nil, &text)
		}
		if err := r.toStderr.Set(strconv.FormatBool(!stacks)); err != nil {
			return 0, err
		}
	}
	return r.next.Write(line)
}
