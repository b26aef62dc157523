package kms_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"

	"snowglobe.test/fakes/kms"
)

func Example() {
	folder, err := os.MkdirTemp("", "kms")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	l, err := net.Listen("unix", filepath.Join(folder, "kms.sock"))
	if err != nil {
		log.Fatal(err)
	}
	plugin := kms.Serve(l, kms.Config{})
	defer plugin.Stop(context.Background())

	// The content of the file for --encryption-provider-config.
	configuration, err := plugin.EncryptionConfiguration("fake", 3*time.Second, "secrets")
	if err != nil {
		log.Fatal(err)
	}
	_ = configuration

	// What the API server does from now on.
	conn, err := grpc.NewClient("unix://"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	client := kmsapi.NewKeyManagementServiceClient(conn)
	show := func() {
		status, err := client.Status(context.Background(), &kmsapi.StatusRequest{})
		fmt.Println(status.GetHealthz(), status.GetKeyId(), err)
	}

	show()
	plugin.Rotate()
	plugin.SetHealthz("the HSM is on fire")
	show()
	plugin.Status.Use(kms.StatusRule{
		Name: "once", Times: 1,
		Answer: plugin.DistortStatus(func(answer *kms.StatusAnswer) { answer.KeyID = "key-99" }),
	})
	show()
	show()
	fmt.Println(len(plugin.Status.Calls()), "calls")
	// Output:
	// ok key-1 <nil>
	// the HSM is on fire key-2 <nil>
	// the HSM is on fire key-99 <nil>
	// the HSM is on fire key-2 <nil>
	// 4 calls
}
