package process

import (
	"bytes"
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// klogLogger is a logger that the program has given klog by SetLogger, with its options.
type klogLogger struct {
	logger     logr.Logger
	contextual bool
	flush      func()
	write      func([]byte)
}

// programLogger returns the logger that klog has been given, if any. klog does not tell it.
func programLogger() (l klogLogger, ok bool) {
	state := reflect.ValueOf(klog.CaptureState()).Elem()
	field := func(of reflect.Value, name string) any {
		f := of.FieldByName(name)
		return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem().Interface() // it may not be exported
	}
	writer := state.FieldByName("logger")
	if writer.IsNil() {
		return klogLogger{}, false
	}
	options := state.FieldByName("loggerOptions")
	return klogLogger{
		field(writer.Elem(), "Logger").(logr.Logger), field(options, "contextualLogger").(bool),
		field(options, "flush").(func()), field(options, "writeKlogBuffer").(func([]byte)),
	}, true
}

// set gives klog the logger. As SetLogger says, nothing may log meanwhile. This is called only
// where the program has set a logger, and so keeps to that itself.
func (l klogLogger) set() {
	klog.SetLoggerWithOptions(l.logger, klog.ContextualLogger(l.contextual), klog.FlushLogger(l.flush),
		klog.WriteKlogBuffer(l.write))
}

// takeOverLogger has the program's logger, if there is one, get the lines of strangers only. A
// member's go to its log, as they would without such a logger.
func takeOverLogger(verbosity int) (routed bool) {
	program, ok := programLogger()
	if !ok {
		return false
	}
	onGiveBack(func() {
		now, ok := programLogger()
		if _, ours := now.logger.GetSink().(routedSink); ok && ours {
			program.set()
		}
	})
	config := textlogger.NewConfig(textlogger.Output(logRouter{}), textlogger.Verbosity(verbosity))
	router := program
	// Between the line that logs and these loggers are two frames: Logger.Info and the sink's.
	router.logger = logr.New(routedSink{textlogger.NewLogger(config).WithCallDepth(2), program.logger.WithCallDepth(2)})
	if program.write != nil {
		router.write = func(line []byte) {
			m := current()
			if m == nil {
				program.write(line)
				return
			}
			text := string(bytes.TrimSpace(line))
			m.lastLine.Store(&text)
			_, _ = logRouter{}.Write(line)
		}
	}
	router.set()
	return true
}

// routedSink logs to one of two loggers.
type routedSink struct{ member, program logr.Logger }

// logger returns the logger of the calling goroutine.
func (s routedSink) logger() logr.Logger {
	if current() == nil {
		return s.program
	}
	return s.member
}

// Init implements logr.LogSink.
func (s routedSink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s routedSink) Enabled(level int) bool { return s.logger().V(level).Enabled() }

// Info implements logr.LogSink. klog logs a fatal line like this too, and then exits.
func (s routedSink) Info(level int, msg string, keysAndValues ...any) {
	if m := current(); m != nil {
		m.lastLine.Store(&msg)
	}
	s.logger().V(level).Info(msg, keysAndValues...)
}

// Error implements logr.LogSink.
func (s routedSink) Error(err error, msg string, keysAndValues ...any) {
	s.logger().Error(err, msg, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (s routedSink) WithValues(keysAndValues ...any) logr.LogSink {
	return routedSink{s.member.WithValues(keysAndValues...), s.program.WithValues(keysAndValues...)}
}

// WithName implements logr.LogSink.
func (s routedSink) WithName(name string) logr.LogSink {
	return routedSink{s.member.WithName(name), s.program.WithName(name)}
}

// WithCallDepth implements logr.CallDepthLogSink.
func (s routedSink) WithCallDepth(depth int) logr.LogSink {
	return routedSink{s.member.WithCallDepth(depth), s.program.WithCallDepth(depth)}
}
