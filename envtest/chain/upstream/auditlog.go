package upstream

// Works around lumberjack.Logger, which rotates the file of --audit-log-path
// (k8s.io/apiserver/pkg/server/options, getWriter): its goroutine for old files never ends, and
// upstream never closes the file. TestAuditLogs fails when that has changed.

import (
	"reflect"
	"strings"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/apiserver/pkg/audit"
)

// AuditLogs are the files that an audit backend writes to, with what writes them.
func AuditLogs(backend audit.Backend) []*lumberjack.Logger {
	var found []*lumberjack.Logger
	var look func(value reflect.Value)
	look = func(value reflect.Value) {
		switch value.Kind() {
		case reflect.Pointer:
			if value.Type() == reflect.TypeFor[*lumberjack.Logger]() {
				found = append(found, (*lumberjack.Logger)(value.UnsafePointer()))
				return
			}
			look(value.Elem())
		case reflect.Interface:
			look(value.Elem())
		case reflect.Slice:
			for i := range value.Len() {
				look(value.Index(i))
			}
		case reflect.Struct:
			if !strings.HasPrefix(value.Type().PkgPath(), "k8s.io/apiserver/") {
				return // no wrapper of backends: these are all there
			}
			for _, field := range value.Fields() {
				look(field)
			}
		}
	}
	look(reflect.ValueOf(backend))
	return found
}

// EndAuditLog closes the file and ends the goroutine of its logger. A late event would open the
// file again, and no harm done.
func EndAuditLog(log *lumberjack.Logger) error {
	err := log.Close()
	lock, changed := unexported[sync.Mutex](log, "mu")
	if changed != nil {
		return changed
	}
	work, changed := unexported[chan bool](log, "millCh")
	if changed != nil {
		return changed
	}
	lock.Lock()
	defer lock.Unlock()
	if *work != nil {
		*work <- true // there is room when the goroutine has begun, and so knows this channel
		close(*work)
		*work = nil // a late event wakes no goroutine, and goes on
	}
	return err
}
