package baseline

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/wire"
	"snowglobe.test/internal/pki"
)

// bareServer is a Go server with HTTP/2 over TLS that answers what a load asks of an API server, and
// nothing else: it neither stores nor encodes. An event is the bytes of one of an API server, with
// its stamp replaced.
type bareServer struct {
	event     []byte // with a stamp
	at        int    // where the stamp begins
	mediaType string

	mu         sync.Mutex
	namespaces int
	selectors  map[string]string // the group's label of each object, by its path
	streams    map[string][]*bareStream
}

// bareStream is who watches objects.
type bareStream struct {
	selector string // empty for all
	events   chan []byte
}

// bareQueue is how many events wait for a stream before the writers do.
const bareQueue = 1024

// ServeHTTP2 serves what a load asks of an API server, on loopback until stop is called. Who watches
// gets the event for each write, with the stamp of the write in it.
func ServeHTTP2(event []byte, mediaType string) (config *rest.Config, stop func() error, err error) {
	s := &bareServer{
		event: event, at: bytes.Index(event, []byte(wire.StampMark)), mediaType: mediaType,
		selectors: map[string]string{}, streams: map[string][]*bareStream{},
	}
	authority, err := pki.NewAuthority("bench")
	if err != nil {
		return nil, nil, err
	}
	certificate, ca, err := authority.Certify("127.0.0.1")
	if err != nil {
		return nil, nil, err
	}
	user, err := authority.Client("bench")
	if err != nil {
		return nil, nil, err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{
		Handler: s, TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		},
		BaseContext: func(net.Listener) context.Context { return ctx },
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: bareStreams},
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	stop = func() error {
		cancel()
		err := server.Close()
		<-served // http.ErrServerClosed
		return err
	}
	return &rest.Config{
		Host:            "https://" + listener.Addr().String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: ca, CertData: user.Cert, KeyData: user.Key},
	}, stop, nil
}

// bareStreams is how many streams a connection may have, as with kube-apiserver.
const bareStreams = 1000

// ServeHTTP implements http.Handler.
func (s *bareServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	switch {
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	case r.Method == http.MethodPost:
		made, err := s.create(r.URL.Path, body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(made) // who has gone needs no answer
	case r.Method == http.MethodPatch:
		s.change(r.Context(), r.URL.Path, body)
		fallthrough
	default:
		_, _ = w.Write([]byte(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`))
	}
}

// create makes a namespace, or keeps what group an object is of.
func (s *bareServer) create(at string, body []byte) (made any, err error) {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if path.Base(at) == "namespaces" {
		s.namespaces++
		return corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bench-%d", s.namespaces)}}, nil
	}
	s.selectors[at+"/"+object.Name] = load.GroupLabel + "=" + object.Labels[load.GroupLabel]
	return object, nil
}

// change sends an event to all who watch the object.
func (s *bareServer) change(ctx context.Context, at string, body []byte) {
	event := bytes.Clone(s.event)
	copy(event[s.at:s.at+wire.StampBytes], body[max(0, bytes.Index(body, []byte(wire.StampMark))):])
	s.mu.Lock()
	streams, selector := s.streams[path.Dir(at)], s.selectors[at]
	s.mu.Unlock()
	for _, stream := range streams {
		if stream.selector != "" && stream.selector != selector {
			continue
		}
		select {
		case stream.events <- event:
		case <-ctx.Done():
			return
		}
	}
}

// watch writes events as they come, and flushes when no more wait.
func (s *bareServer) watch(w http.ResponseWriter, r *http.Request) {
	stream := &bareStream{r.URL.Query().Get("labelSelector"), make(chan []byte, bareQueue)}
	s.replace(r.URL.Path, func(streams []*bareStream) []*bareStream { return append(streams, stream) })
	defer s.replace(r.URL.Path, func(streams []*bareStream) []*bareStream {
		return slices.DeleteFunc(streams, func(other *bareStream) bool { return other == stream })
	})
	w.Header().Set("Content-Type", s.mediaType)
	flusher := http.NewResponseController(w)
	for err := flusher.Flush(); err == nil; {
		select {
		case event := <-stream.events:
			if _, err = w.Write(event); err == nil && len(stream.events) == 0 {
				err = flusher.Flush()
			}
		case <-r.Context().Done():
			return
		}
	}
}

// replace changes a copy of who watches a path: those who send have the old one.
func (s *bareServer) replace(at string, change func([]*bareStream) []*bareStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[at] = change(slices.Clone(s.streams[at]))
}
