package kubelet_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"snowglobe.test/fakes/kubelet"
)

// A node with one pod, in which a command is run as kubectl exec runs it.
func Example() {
	ctx := context.Background()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	node, err := kubelet.Serve(l, kubelet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	app := &kubelet.Container{Name: "app", Exec: func(_ context.Context, p *kubelet.Process) (int, error) {
		fmt.Fprintln(p.Stdout, "you ran", strings.Join(p.Request.Command, " "))
		return 3, nil
	}}
	if err := node.AddPod(&kubelet.Pod{Namespace: "default", Name: "web", Containers: []*kubelet.Container{app}}); err != nil {
		log.Fatal(err)
	}

	// A kube-apiserver would come to the same URL, when it is asked for
	// /api/v1/namespaces/default/pods/web/exec.
	config := &rest.Config{Host: node.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: node.CA()}}
	webSocket, err := remotecommand.NewWebSocketExecutor(config, "GET", node.URL()+"/exec/default/web/app?output=1&command=ls&command=-l")
	if err != nil {
		log.Fatal(err)
	}
	err = webSocket.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: os.Stdout})
	fmt.Println(err)

	sessions, err := node.AwaitSessions(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sessions[0].Request.Verb, sessions[0].Protocol, sessions[0].ExitCode)
	if err := node.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// you ran ls -l
	// command terminated with exit code 3
	// exec v5.channel.k8s.io 3
}
