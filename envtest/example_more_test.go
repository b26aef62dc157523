package envtest_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/linked"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/envtest/trace"
)

// with runs an example on a control plane of its own.
func with(f func(ctx context.Context, cp *envtest.ControlPlane) error, opts ...envtest.Option) {
	if err := envtest.SimulateContext(f, opts...); err != nil {
		fmt.Println(err)
	}
}

// The flags are kube-apiserver's own, and so are the errors.
func ExampleWithFlags() {
	_, err := envtest.Launch(context.Background(), envtest.WithFlags("--enable-admission-plugins=Snow"))
	fmt.Println(strings.Contains(err.Error(), `enable-admission-plugins plugin "Snow" is unknown`))
	// Output: true
}

// Definitions as objects; WithCRDPaths takes files and folders.
func ExampleWithCRDs() {
	with(func(ctx context.Context, cp *envtest.ControlPlane) error {
		list, err := dynamic.NewForConfigOrDie(cp.Config()).Resource(widgets).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		fmt.Println(list.GetKind(), len(list.Items))
		return nil
	}, envtest.WithCRDs(widgetCRD()))
	// Output: WidgetList 0
}

// Tests that share a control plane, and do not see each other's objects.
func ExampleControlPlane_Reset() {
	with(func(ctx context.Context, cp *envtest.ControlPlane) error {
		configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
		for range 2 {
			snow := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "snow"}}
			if _, err := configMaps.Create(ctx, snow, metav1.CreateOptions{}); err != nil {
				return err
			}
			if err := cp.Reset(ctx); err != nil {
				return err
			}
		}
		list, err := configMaps.List(ctx, metav1.ListOptions{})
		fmt.Println(len(list.Items))
		return err
	})
	// Output: 0
}

// Two futures of one past.
func ExampleControlPlane_Fork() {
	with(func(ctx context.Context, cp *envtest.ControlPlane) error {
		now, err := cp.Snapshot(ctx)
		if err != nil {
			return err
		}
		fork, err := cp.Fork(ctx, now)
		if err != nil {
			return err
		}
		snow := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "snow"}}
		if _, err := kubernetes.NewForConfigOrDie(fork.Config()).CoreV1().Namespaces().Create(ctx, snow, metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err = kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Namespaces().Get(ctx, "snow", metav1.GetOptions{})
		fmt.Println(err)
		return fork.Stop(ctx)
	})
	// Output: namespaces "snow" not found
}

// A store that outlives its control plane.
func ExampleWithStore_shared() {
	ctx := context.Background()
	store := memory.New("shared")
	if err := store.Start(ctx); err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		cp, err := envtest.Launch(ctx, envtest.WithStore(storage.Shared{Backend: store}))
		if err != nil {
			log.Fatal(err)
		}
		configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
		if _, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			log.Fatal(err)
		}
		list, err := configMaps.List(ctx, metav1.ListOptions{})
		if err != nil {
			log.Fatal(err)
		}
		for _, item := range list.Items {
			fmt.Print(item.Name, " ")
		}
		if err := cp.Stop(ctx); err != nil {
			log.Fatal(err)
		}
	}
	if err := store.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: first first second
}

// A kubeconfig for kubectl, and for clients that insist on a file.
func ExampleWithKubeconfig() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.Remove(folder) }()
	path := filepath.Join(folder, "kubeconfig")
	cp, err := envtest.Launch(ctx, envtest.WithKubeconfig(path))
	if err != nil {
		log.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		log.Fatal(err)
	}
	version, err := kubernetes.NewForConfigOrDie(config).Discovery().ServerVersion()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(version.GitVersion == linked.Release())
	if err := cp.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: true
}

// A failed hook ends a kube-apiserver process; here it is an error.
func ExampleWithFaults() {
	_, err := envtest.Launch(context.Background(), envtest.WithFaults("fail hook/rbac/bootstrap-roles with=error"))
	fmt.Println(err)
	// Output: start control plane: post-start hook "rbac/bootstrap-roles" failed: injected at hook/rbac/bootstrap-roles post-start on apiserver-0, because of the rule "fail hook/rbac/bootstrap-roles with=error"
}

// The chain is assembled stage by stage, and each stage can fail.
func ExampleWithFaults_stage() {
	_, err := envtest.Launch(context.Background(), envtest.WithFaults("fail stage/aggregator with=error"))
	fmt.Println(err)
	// Output: start control plane: start chain: stage aggregator: injected at stage/aggregator on apiserver-0, because of the rule "fail stage/aggregator with=error"
}

// A list from a cache that is frozen behind the store is stale.
func ExampleControlPlane_Faults() {
	with(func(ctx context.Context, cp *envtest.ControlPlane) error {
		configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
		frozen, err := cp.Faults().Inject("freeze cache/configmaps")
		if err != nil {
			return err
		}
		defer frozen.Remove()
		if _, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{}); err != nil {
			return err
		}
		for _, version := range []string{"0", ""} {
			list, err := configMaps.List(ctx, metav1.ListOptions{ResourceVersion: version})
			if err != nil {
				return err
			}
			fmt.Printf("resourceVersion %q: %d\n", version, len(list.Items))
		}
		return nil
	})
	// Output:
	// resourceVersion "0": 0
	// resourceVersion "": 1
}

// Nothing more happens by itself: the cache has what was written, unless it is held.
func ExampleControlPlane_Settle() {
	with(func(ctx context.Context, cp *envtest.ControlPlane) error {
		configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
		look := func() error {
			settled, err := cp.Settle(ctx)
			if err != nil {
				return err
			}
			list, err := configMaps.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return err
			}
			fmt.Printf("cached: %d, something held: %t\n", len(list.Items), len(settled.Held) > 0)
			return nil
		}
		frozen, err := cp.Faults().Inject("freeze cache/configmaps")
		if err != nil {
			return err
		}
		if _, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := look(); err != nil {
			return err
		}
		frozen.Remove()
		return look()
	})
	// Output:
	// cached: 0, something held: true
	// cached: 1, something held: false
}

// The trace says which server of the chain answered.
func ExampleControlPlane_Trace() {
	with(func(ctx context.Context, cp *envtest.ControlPlane) error {
		kubernetes.NewForConfigOrDie(cp.Config()).RESTClient().Get().AbsPath("/no/such/path").Do(ctx)
		record, err := cp.Trace().Await(ctx, func(r trace.Record) bool {
			request, ok := r.Event.(trace.Request)
			return ok && request.URI == "/no/such/path"
		})
		if err != nil {
			return err
		}
		request := record.Event.(trace.Request)
		fmt.Println(request.Code, request.Server)
		return nil
	})
	// Output: 404 not-found
}

// A path is unknown for good only when all paths are known; fired early, the
// signal shows the 404 that upstream guards against.
func ExampleControlPlane_Faults_fire() {
	with(func(ctx context.Context, cp *envtest.ControlPlane) error {
		get := func() (code int) {
			kubernetes.NewForConfigOrDie(cp.Config()).RESTClient().Get().AbsPath("/apis/example.com/v1/widgets").Do(ctx).StatusCode(&code)
			return code
		}
		fmt.Println(get())
		if _, err := cp.Faults().Inject("fire signal/MuxAndDiscoveryComplete"); err != nil {
			return err
		}
		fmt.Println(get())
		return nil
	}, envtest.WithFaults("hold hook/crd-informer-synced"))
	// Output:
	// 503
	// 404
}
