// Package etcdlog owns the logger of the etcd servers in this process. It writes
// only what makes etcd panic or exit, so that this never happens silently.
package etcdlog

import (
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// New returns a logger that writes panics and fatal errors to standard error, and
// drops everything else.
func New() *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zapcore.DPanicLevel))
}
