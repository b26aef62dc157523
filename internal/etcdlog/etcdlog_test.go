package etcdlog_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"k8s.io/klog/v2"

	"snowglobe.test/internal/etcdlog"
)

func TestLogger(t *testing.T) {
	defer klog.CaptureState().Restore()
	var text bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&text)
	log := etcdlog.New().With(zap.String("target", "etcd-endpoints://0xc0/memory"))
	log.Debug("too much detail")
	log.Warn("retrying of unary invoker failed", zap.Error(errors.New("no leader")), zap.Uint("attempt", 3))
	log.Error("lost", zap.Stringers("members", []klog.ObjectRef{{Name: "a"}}))
	klog.Flush()
	said := text.String()
	assert.NotContains(t, said, "detail")
	assert.Contains(t, said, `"retrying of unary invoker failed" logger="etcd-client" attempt=3 error="no leader" target="etcd-endpoints://0xc0/memory"`)
	assert.Contains(t, said, `"lost" logger="etcd-client"`)
}
