package contract

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
)

// swappableTransformer is swapped in use; upstream's own tests reach into the store.
type swappableTransformer struct {
	now atomic.Pointer[value.Transformer]
}

func (c *swappableTransformer) set(to value.Transformer) { c.now.Store(&to) }

func (c *swappableTransformer) get() value.Transformer { return *c.now.Load() }

// prefix returns the transformer, which must be of the default kind.
func (c *swappableTransformer) prefix() *storagetesting.PrefixTransformer {
	return c.get().(*storagetesting.PrefixTransformer)
}

// TransformFromStorage implements value.Transformer.
func (c *swappableTransformer) TransformFromStorage(ctx context.Context, data []byte, about value.Context) ([]byte, bool, error) {
	return c.get().TransformFromStorage(ctx, data, about)
}

// TransformToStorage implements value.Transformer.
func (c *swappableTransformer) TransformToStorage(ctx context.Context, data []byte, about value.Context) ([]byte, error) {
	return c.get().TransformToStorage(ctx, data, about)
}

// UpdateTransformer implements upstream's InterfaceWithTransformerOverride.
func (s *fixture) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	before := s.transformer.get()
	s.transformer.set(modify(before))
	return func() { s.transformer.set(before) }
}

// UpdatePrefixTransformer implements upstream's InterfaceWithPrefixTransformer.
func (s *fixture) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	before := s.transformer.prefix()
	s.transformer.set(modify(newPrefixTransformer())) // like before, with a fresh count
	return func() { s.transformer.set(before) }
}

var errInjected = errors.New("synthetic error")

// failingTransformer fails on demand.
type failingTransformer struct {
	value.Transformer
	fail atomic.Bool
}

// TransformFromStorage implements value.Transformer.
func (f *failingTransformer) TransformFromStorage(ctx context.Context, data []byte, about value.Context) ([]byte, bool, error) {
	if f.fail.Load() {
		return nil, false, errInjected
	}
	return f.Transformer.TransformFromStorage(ctx, data, about)
}

func newPrefixTransformer() *storagetesting.PrefixTransformer {
	return storagetesting.NewPrefixTransformer([]byte(valuePrefix), false)
}

func newFailingTransformer() *failingTransformer {
	return &failingTransformer{Transformer: newPrefixTransformer()}
}

// failingCodec fails on demand.
type failingCodec struct {
	runtime.Codec
	fail atomic.Bool
}

// Decode implements runtime.Codec.
func (f *failingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if f.fail.Load() {
		return nil, nil, errInjected
	}
	return f.Codec.Decode(data, defaults, into)
}

// corrupt returns upstream's unexported error for an object it can't transform.
func corrupt() error {
	broken := &failingTransformer{}
	broken.fail.Store(true)
	_, _, err := etcd3.WithCorruptObjErrorHandlingTransformer(broken).TransformFromStorage(context.Background(), nil, nil)
	return err
}

// deleter is a store that can also delete corrupt objects.
type deleter struct {
	storage.Interface
	fixture *fixture
}

func newDeleter(s *fixture) *deleter {
	return &deleter{etcd3.NewStoreWithUnsafeCorruptObjectDeletion(s.Interface, pods), s}
}

// UpdateTransformer implements upstream's InterfaceWithTransformerOverride.
func (d *deleter) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	return d.fixture.UpdateTransformer(modify)
}
