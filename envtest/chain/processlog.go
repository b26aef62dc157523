package chain

import (
	"flag"
	"fmt"
	"io"

	"k8s.io/klog/v2"
)

// takeOverKlog has klog write to logRouter. Clients in the same process may log at
// the same time, so what klog does not guard is left alone as far as it is set the
// usual way.
func takeOverKlog(verbosity int, undo func(func())) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	was := func(name string) string { return flags.Lookup(name).Value.String() }
	set := func(name, value string) error {
		if was(name) == value {
			return nil
		}
		before := was(name)
		undo(func() { _ = flags.Set(name, before) }) // it has had it
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("take over klog: set %s: %w", name, err)
		}
		return nil
	}
	if was("logtostderr") == "true" {
		undo(func() {
			klog.LogToStderr(true)
			klog.SetOutput(nil)
		})
	} else {
		undo(klog.CaptureState().Restore) // only so the files come back
	}
	for name, value := range map[string]string{
		"alsologtostderr": "false", "stderrthreshold": "4" /* above FATAL */, "v": fmt.Sprint(verbosity),
	} {
		if err := set(name, value); err != nil {
			return err
		}
	}
	// klog writes a line to the outputs of its own severity and of all below.
	klog.SetOutput(io.Discard)
	klog.SetOutputBySeverity("INFO", logRouter{})
	if was("one_output") == "true" {
		klog.SetOutput(logRouter{})
	}
	klog.LogToStderr(false)
	return nil
}
