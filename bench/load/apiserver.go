package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"snowglobe.test/bench/wire"
	"snowglobe.test/fakes/webhook"
)

// Servers is how the clients of a load reach an API server.
type Servers struct {
	Configs []*rest.Config // clients are spread over them
	Sampled *rest.Config   // of the first watcher; nil if its stages are not measured
}

// at is how the client of a number reaches its server.
func (r Servers) at(number int) *rest.Config { return r.Configs[number%len(r.Configs)] }

// apiServer is an API server that a load runs on, in namespaces of its own.
type apiServer struct {
	*Load
	Servers
	kind       Kind
	namespaces []string
	admin      Clients
	writers    []connection
	first      *connection         // of the first watcher, where it is sampled
	shared     []connection        // of watchers
	converter  *webhook.Conversion // of the custom resource, if it is converted
}

// OnAPIServer is the backend of loads on an API server.
func OnAPIServer(to Servers) func(*Load) Backend {
	return func(l *Load) Backend { return &apiServer{Load: l, Servers: to, kind: kinds[l.Options.Resource]} }
}

// namespaceOf is the namespace of a group of objects.
func (s *apiServer) namespaceOf(group int) string { return s.namespaces[s.NamespaceNumber(group)] }

// GroupLabel is by what watchers select a group of objects.
const GroupLabel = "bench.snowglobe.test/group"

// path is the URL path of a writer's object.
func (s *apiServer) path(writer int) string {
	return s.kind.path(s.namespaceOf(writer%s.Groups)) + "/" + ObjectName(writer)
}

func ObjectName(writer int) string { return fmt.Sprintf("writer-%d", writer) }

// Prepare implements Backend.
func (s *apiServer) Prepare(ctx context.Context) (from string, err error) {
	if s.admin, err = Connect(s.at(0)); err != nil {
		return "", err
	}
	for range s.Options.Namespaces {
		if err := s.makeNamespace(ctx); err != nil {
			return "", err
		}
	}
	if s.kind.Custom() {
		if err := s.define(ctx); err != nil {
			return "", fmt.Errorf("make the resource definition of the load: %w", err)
		}
	}
	for writer := range s.Objects {
		if err := s.openWriter(ctx, writer); err != nil {
			return "", fmt.Errorf("make the objects of the load: %w", err)
		}
	}
	if err := s.makeObjects(ctx); err != nil {
		return "", fmt.Errorf("make the objects that are only listed: %w", err)
	}
	if err := s.connectWatchers(); err != nil {
		return "", err
	}
	list, err := s.admin.dynamic.Resource(s.kind.GVR()).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("list the objects of the load: %w", err)
	}
	return list.GetResourceVersion(), nil
}

func (s *apiServer) connectWatchers() error {
	for number := range (s.Options.Watchers + s.Options.StreamsPerConnection - 1) / s.Options.StreamsPerConnection {
		client, err := connect(s.at(number), s.watchType())
		if err != nil {
			return err
		}
		s.shared = append(s.shared, client)
	}
	if s.Sampled == nil {
		return nil
	}
	client, err := connect(s.Sampled, s.watchType())
	s.first = &client
	return err
}

// answerTimeout bounds the first request to a target.
const answerTimeout = 10 * time.Second

// makeNamespace makes a namespace for the load, and is the first to ask the target. Pods need its
// ServiceAccount, which a controller may make too.
func (s *apiServer) makeNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-watch-"}}
	namespace, err := s.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a namespace for the load, within %s, failed: %w; is an API server running there, "+
			"and may this user write?", answerTimeout, err)
	}
	s.namespaces = append(s.namespaces, namespace.Name)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = s.admin.CoreV1().ServiceAccounts(namespace.Name).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the service account of the load: %w", err)
	}
	return nil
}

// openWriter connects a writer and creates its object. Neither is measured.
func (s *apiServer) openWriter(ctx context.Context, number int) error {
	client, err := connect(s.at(number), jsonType)
	if err != nil {
		return err
	}
	s.writers = append(s.writers, client)
	return s.makeObject(ctx, client.rest, ObjectName(number), number%s.Groups)
}

// Write implements Backend. It changes an annotation and nothing else.
func (s *apiServer) Write(ctx context.Context, writer int, at wire.Stamp) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, wire.StampAnnotation, at)
	return s.writers[writer].rest.Patch(types.MergePatchType).AbsPath(s.path(writer)).Body([]byte(patch)).Do(ctx).
		Error()
}

// cleanupTimeout bounds how long a load takes to clean up.
const cleanupTimeout = 10 * time.Second

// Close implements Backend. Namespaces go first, because then nothing more can be created in them,
// and then the objects, because only a namespace controller would remove them.
func (s *apiServer) Close(ctx context.Context) error {
	for _, c := range slices.Concat(s.shared, s.writers) {
		c.Close()
	}
	if s.first != nil {
		s.first.Close()
	}
	defer s.admin.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	for _, namespace := range s.namespaces {
		errs = append(errs, s.admin.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}),
			s.admin.dynamic.Resource(s.kind.GVR()).Namespace(namespace).
				DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			s.admin.CoreV1().ServiceAccounts(namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
				metav1.ListOptions{}))
	}
	if s.kind.Custom() && s.namespaces != nil {
		errs = append(errs, s.undefine(ctx))
	}
	if s.converter != nil {
		errs = append(errs, s.converter.Stop(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("delete the namespaces %s of the load, and what is in them: %w",
			strings.Join(s.namespaces, ", "), err)
	}
	return nil
}

// watchType is what watchers say that they send and accept. Those that decode nothing say it of
// each watch.
func (s *apiServer) watchType() string {
	if s.Options.Decode {
		return encodings[s.Options.Encoding].accepted
	}
	return jsonType
}
