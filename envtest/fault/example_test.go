package fault_test

import (
	"context"
	"fmt"

	"snowglobe.test/envtest/fault"
)

// An injector asks, and does what it is told.
func ExampleSet_At() {
	plan, err := fault.ParsePlan("example.plan", "fail store/put resource=configmaps nth=2 with=leader-changed\n", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	set := fault.New(fault.Config{Seed: 1})
	defer set.Close()
	if _, err := set.Add(plan...); err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"a", "b", "c"} {
		d, err := set.At(context.Background(), func() fault.Operation {
			return fault.Operation{Point: "store/put", Resource: "configmaps", Namespace: "default", Name: name}
		})
		switch {
		case err != nil:
			fmt.Println("gave up:", err)
		case d.Kind == fault.Fail:
			fmt.Println(name, "fails:", d.Err())
		default:
			fmt.Println(name, "is written")
		}
	}
	fmt.Println("never fired:", set.Unfired())
	// Output:
	// a is written
	// b fails: etcdserver: leader changed
	// c is written
	// never fired: []
}

// A test holds an operation, looks at it, and lets it go.
func ExampleGate() {
	set := fault.New(fault.Config{})
	defer set.Close()
	gate, err := set.Gate("hook/crd-informer-synced")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, ran := context.Background(), make(chan error)
	go func() {
		_, err := set.At(ctx, func() fault.Operation {
			return fault.Operation{Point: "hook/crd-informer-synced", Verb: "post-start", Server: "alpha"}
		})
		ran <- err
	}()
	waiting, err := gate.Await(ctx, 1)
	fmt.Println(waiting, err)
	gate.Open()
	fmt.Println(<-ran)
	// Output:
	// [hook/crd-informer-synced post-start on alpha] <nil>
	// <nil>
}
