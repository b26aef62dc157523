// Package etcdlog lets etcd's client, which logs by zap, log by klog: where a control
// plane runs, its log has what its clients of the store say. It never decides where
// klog writes.
package etcdlog

import (
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// New returns a logger of what etcd's client says from level info on.
func New() *zap.Logger { return zap.New(core{}).Named("etcd-client") }

// core hands entries to klog.
type core struct{ fields []zapcore.Field }

// Enabled implements zapcore.LevelEnabler.
func (core) Enabled(level zapcore.Level) bool { return level >= zapcore.InfoLevel }

// With implements zapcore.Core.
func (c core) With(fields []zapcore.Field) zapcore.Core {
	return core{slices.Concat(c.fields, fields)}
}

// Check implements zapcore.Core.
func (c core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c core) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, field := range slices.Concat(c.fields, fields) {
		field.AddTo(values)
	}
	said := []any{"logger", entry.LoggerName}
	for _, key := range slices.Sorted(maps.Keys(values.Fields)) {
		said = append(said, key, values.Fields[key])
	}
	if entry.Level >= zapcore.ErrorLevel {
		klog.ErrorS(nil, entry.Message, said...)
	} else {
		klog.InfoS(entry.Message, said...)
	}
	return nil
}

// Sync implements zapcore.Core.
func (core) Sync() error { return nil }
