package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/transcript"
	"snowglobe.test/envtest/storage/external"
)

// DefaultPrefix is what all keys begin with that cases write.
const DefaultPrefix = "/snowglobe-conformance/"

// dialTimeout bounds the first contact.
const dialTimeout = 5 * time.Second

// Config names a store.
type Config struct {
	// Endpoints are the store's URLs, like "http://127.0.0.1:2379" or "unix:///run/etcd.sock".
	Endpoints []string
	// CertFile, KeyFile and CAFile are for https.
	CertFile string
	KeyFile  string
	CAFile   string
	// Prefix is below which keys are written. Empty means DefaultPrefix.
	Prefix string
	// KeepHistory leaves out the cases that compact.
	KeepHistory bool
	// Patience bounds the wait for what should come at once, like an event. Zero means 10 s.
	Patience time.Duration
}

// String names the store for people. It implements engine.Source, and so does Open.
func (c Config) String() string { return strings.Join(c.Endpoints, ",") }

// Open is described at String.
func (c Config) Open(ctx context.Context) (engine.Target[*T], error) { return Open(ctx, c) }

// Store is an open store, and implements engine.Target. It is not for concurrent use.
type Store struct {
	cfg     Config
	prefix  string // of this run
	clients [2]*kubernetes.Client
}

// Open connects to the store and reads from it once. The caller closes it.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	switch {
	case cfg.Prefix == "":
		cfg.Prefix = DefaultPrefix
	case !strings.HasSuffix(cfg.Prefix, "/"):
		cfg.Prefix += "/"
	}
	cfg.Patience = cmp.Or(cfg.Patience, 10*time.Second)
	s := &Store{cfg: cfg, prefix: cfg.Prefix + utilrand.String(8) + "/"}
	backend, err := external.New(external.Config{
		URLs: cfg.Endpoints, CertFile: cfg.CertFile, KeyFile: cfg.KeyFile, CAFile: cfg.CAFile, DialTimeout: dialTimeout,
		Logger: zap.NewNop(), // the client would tell of every refusal
	})
	if err != nil {
		return nil, err
	}
	for i := range s.clients {
		if s.clients[i], err = backend.Client(); err != nil {
			return nil, errors.Join(err, s.disconnect())
		}
	}
	if err := s.Check(ctx); err != nil {
		if why := backend.Probe(ctx); why != nil {
			err = why
		}
		return nil, errors.Join(fmt.Errorf("the store at %s can't be judged: it did not answer within %s: %w", s,
			dialTimeout, err), s.disconnect())
	}
	return s, nil
}

// Check says why the store can't be judged any more, nil if it can.
func (s *Store) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout, fmt.Errorf("no answer within %s", dialTimeout))
	defer cancel()
	_, err := s.clients[0].Kubernetes.Get(ctx, s.prefix, kubernetes.GetOptions{})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// String names the store for people.
func (s *Store) String() string { return s.cfg.String() }

// Reports implements engine.Target: a store is of no release of Kubernetes.
func (s *Store) Reports() string { return "" }

// Notice says what judging the store does to it.
func (s *Store) Notice([]engine.Info) string {
	history := "Its history is compacted, as API servers do every five minutes: " +
		"a list or a watch of another client may have to begin anew."
	if s.cfg.KeepHistory {
		history = "Its history is not compacted."
	}
	const notice = "At %s, keys are written below %s only, and removed at the end. %s\n"
	return fmt.Sprintf(notice, s, s.prefix, history)
}

// Unmet implements engine.Target.
func (s *Store) Unmet(c engine.Info) string {
	if c.Needs.Compaction && s.cfg.KeepHistory {
		return "needs " + engine.NeedsCompaction + ": that of " + s.String() + " is to be kept"
	}
	return ""
}

// caseTimeout bounds one case.
const caseTimeout = time.Minute

// Do implements engine.Target. A store's requests are no HTTP, so they are not recorded.
func (s *Store) Do(ctx context.Context, c Case, _ *transcript.Recorder, fail func(string, ...int)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := newT(s, c, fail)
	c.Within(ctx, caseTimeout, t, func(ctx context.Context) error {
		cancel() // for what the case has left running
		return t.cleanUp(ctx)
	}, fail)
}

// cleanupTimeout bounds the removal of what was written.
const cleanupTimeout = 30 * time.Second

// Close removes what cases may have left, and disconnects.
func (s *Store) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	err := s.remove(ctx, s.prefix)
	if err != nil {
		err = fmt.Errorf("keys below %s at %s may be left: %w", s.prefix, s, err)
	}
	return errors.Join(err, s.disconnect())
}

func (s *Store) disconnect() error {
	var errs []error
	for _, client := range s.clients {
		if client != nil {
			errs = append(errs, client.Close())
		}
	}
	return errors.Join(errs...)
}

// remove deletes all keys below a prefix, one by one, as Kubernetes deletes. Expiring leases
// may delete some at the same time.
func (s *Store) remove(ctx context.Context, prefix string) error {
	client := s.clients[0].Kubernetes
	left, err := client.List(ctx, prefix, kubernetes.ListOptions{})
	if err != nil {
		return err
	}
	for _, kv := range left.Kvs {
		if _, err := client.OptimisticDelete(ctx, string(kv.Key), kv.ModRevision, deleteOrTell); err != nil {
			return err
		}
	}
	return nil
}
