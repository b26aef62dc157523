package process

import (
	"sync"
	_ "unsafe" // for linkname

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// newStoreClient makes all of upstream's own clients of a store.
//
//go:linkname newStoreClient k8s.io/apiserver/pkg/storage/storagebackend/factory.newETCD3Client
var newStoreClient func(storagebackend.TransportConfig) (*kubernetes.Client, error)

// StoreClients are the clients of its store that upstream makes for a member while it is built.
// A stage that fails in the middle leaves some of them open.
type StoreClients struct {
	mu    sync.Mutex
	built bool
	open  []*kubernetes.Client
}

// OwnStoreClients returns the clients of the store that upstream has made for the calling
// goroutine's member.
func OwnStoreClients() *StoreClients {
	if m := current(); m != nil {
		return &m.storeClients
	}
	return &StoreClients{}
}

// Built says that the member is built: who has its clients closes them.
func (s *StoreClients) Built() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.built, s.open = true, nil
}

// Close closes the clients of a member that will not be built, also those that their owners have
// closed.
func (s *StoreClients) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, client := range s.open {
		_ = client.Close() // an error only says that it was closed before, or how its connections ended
	}
	s.open = nil
}

func (s *StoreClients) add(client *kubernetes.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.built {
		s.open = append(s.open, client)
	}
}

// takeOverStoreClients has members know the clients that upstream makes.
func takeOverStoreClients() {
	made := newStoreClient
	onGiveBack(func() { newStoreClient = made })
	newStoreClient = func(config storagebackend.TransportConfig) (*kubernetes.Client, error) {
		client, err := made(config)
		if err == nil {
			OwnStoreClients().add(client)
		}
		return client, err
	}
}
