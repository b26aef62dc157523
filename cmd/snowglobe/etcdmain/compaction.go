package etcdmain

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3compactor"

	"snowglobe.test/fakes/etcd"
)

// compact runs etcd's own automatic compaction, as a client of the server.
func (e *program) compact() (stop func(), err error) {
	retention, err := compactionRetention(e.config)
	if retention == 0 || err != nil {
		return func() {}, err
	}
	client := e.server.Client()
	compactor, err := v3compactor.New(e.log, e.config.AutoCompactionMode, retention, revisionOf{e.server}, compactable{client.Client})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	compactor.Run()
	return func() {
		compactor.Stop()
		_ = client.Close() // it says that its context has ended, as of each client in the process
	}, nil
}

// compactionRetention is a number of revisions or a time; a number is of hours then. 0 means never.
func compactionRetention(config *embed.Config) (time.Duration, error) {
	number, err := strconv.Atoi(config.AutoCompactionRetention)
	switch {
	case err == nil && number >= 0 && config.AutoCompactionMode == embed.CompactorModeRevision:
		return time.Duration(number), nil
	case err == nil && number >= 0:
		return time.Duration(number) * time.Hour, nil
	}
	retention, err := time.ParseDuration(config.AutoCompactionRetention)
	if err != nil {
		return 0, fmt.Errorf("--auto-compaction-retention: %w", err)
	}
	return retention, nil
}

// revisionOf is a v3compactor.RevGetter.
type revisionOf struct{ server *etcd.Server }

// Rev implements v3compactor.RevGetter.
func (r revisionOf) Rev() int64 { return r.server.Revision() }

// compactable is a v3compactor.Compactable.
type compactable struct{ client *clientv3.Client }

// Compact implements v3compactor.Compactable.
func (c compactable) Compact(ctx context.Context, request *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	response, err := c.client.Compact(ctx, request.Revision)
	return (*pb.CompactionResponse)(response), err
}
