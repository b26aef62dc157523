package storage

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// Revision asks a store for its revision.
func Revision(ctx context.Context, client *kubernetes.Client) (int64, error) {
	response, err := client.KV.Get(ctx, "/", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("ask the store for its revision: %w", err)
	}
	return response.Header.Revision, nil
}

// Compact makes a store forget all revisions before its present one, which it
// returns. That it has forgotten them already is no error.
func Compact(ctx context.Context, client *kubernetes.Client) (int64, error) {
	revision, err := Revision(ctx, client)
	if err != nil {
		return 0, err
	}
	if _, err = client.Compact(ctx, revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return 0, fmt.Errorf("compact the store at revision %d: %w", revision, err)
	}
	return revision, nil
}
