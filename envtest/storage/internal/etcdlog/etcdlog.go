// Package etcdlog owns the logger of the etcd servers in this process. It never
// writes but for what makes etcd end the process, which must not happen unseen.
package etcdlog

import (
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// New returns a logger that is silent up to what ends the process: that goes to
// standard error.
func New() *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zapcore.DPanicLevel))
}
