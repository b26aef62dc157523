//go:build soak

package soak_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/sim"
)

var (
	ends     = flag.Int("ends", 2, "how many control planes TestEnds stops under load, each by a seed of its own")
	endsFrom = flag.Uint64("ends-from", 1, "the first of these seeds")
	endsBusy = flag.Int("ends-busy", 0, "how many endless loops run beside TestEnds")
)

// endsPrefix begins the workloads of processes that stop control planes; the first seed,
// the step to the next and the number of seeds follow.
const endsPrefix = "ends "

// TestEnds stops control planes that are in use: four clients write, four watch, others
// reset, settle and fork. Each stops in time, by what the seed says at that moment, and
// leaves nothing. In sim mode all is in virtual time, and the seed decides the whole run:
// without the source of watch caches (chain/reststorage), the stop of seed 5 does not end.
//
//	snowglobe test -tags soak ./envtest/soak -run TestEnds -ends 1000 -timeout 3h -v
//	go test -tags soak ./envtest/soak -run TestEnds -ends 200 -ends-busy 4 -timeout 2h -v
func TestEnds(t *testing.T) {
	for range *endsBusy {
		keepOneBusy(t)
	}
	begun := time.Now()
	var passed atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, min(runtime.NumCPU(), *ends)) // by process
	for i := range errs {
		group.Go(func() {
			errs[i] = endsProcess(t, *endsFrom+uint64(i), len(errs), (*ends-i+len(errs)-1)/len(errs), &passed)
		})
	}
	group.Wait()
	t.Logf("%d of %d control planes have ended in time, with nothing left, in %s", passed.Load(), *ends, time.Since(begun).Round(time.Second))
	require.NoError(t, errors.Join(errs...))
	require.EqualValues(t, *ends, passed.Load())
}

// endsProcess has a process of its own run some seeds, and counts those that pass.
func endsProcess(t *testing.T, from uint64, step, count int, passed *atomic.Int64) error {
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s%d %d %d", workloadEnv, endsPrefix, from, step, count))
	var failures bytes.Buffer
	child.Stderr = &failures
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "seed ") {
			passed.Add(1)
		}
		t.Log(lines.Text())
	}
	if err := child.Wait(); err != nil {
		return fmt.Errorf("seeds %d, %d, ...: %w\n%s", from, from+uint64(step), err, &failures)
	}
	return nil
}

// runEnds is that process. It goes on with the next seed when one has failed.
func runEnds(of string) error {
	var from, step, count uint64
	if _, err := fmt.Sscan(of, &from, &step, &count); err != nil {
		return err
	}
	var failed []error
	for i := range count {
		seed := from + i*step
		took, err := endOne(seed)
		if err != nil {
			failed = append(failed, fmt.Errorf("seed %d, repeat it with -ends 1 -ends-from %d: after %s: %w", seed, seed, took, err))
			continue
		}
		fmt.Printf("seed %d: stopped within %s\n", seed, took.Round(time.Millisecond))
	}
	return errors.Join(failed...)
}

// endOne stops one control plane, in sim mode in virtual time. What is left of it is an
// error, and so is a Stop that is not done in time.
func endOne(seed uint64) (took time.Duration, err error) {
	if sim.Enabled() {
		err = envtest.SimulateContext(func(ctx context.Context, cp *envtest.ControlPlane) error {
			took, err = stopInUse(ctx, cp, seed)
			return err
		}, envtest.WithSeed(seed), envtest.WithTimeouts(0, 30*time.Second)) // as in real time
		return took, err
	}
	before := goleak.IgnoreCurrent()
	cp, err := envtest.Launch(context.Background())
	if err != nil {
		return 0, err
	}
	took, err = stopInUse(context.Background(), cp, seed)
	return took, errors.Join(err, goleak.Find(before))
}

// use is what becomes of a control plane that others use until it has stopped.
type inUse struct {
	cp       *envtest.ControlPlane
	stopping atomic.Bool
	mu       sync.Mutex
	errs     []error
}

// stopInUse stops a control plane in the middle of all, after two seconds at most.
func stopInUse(ctx context.Context, cp *envtest.ControlPlane, seed uint64) (time.Duration, error) {
	u := &inUse{cp: cp}
	load, endLoad := context.WithCancel(ctx)
	defer endLoad()
	var users sync.WaitGroup
	choices := func(user uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, user)) }
	for i := range uint64(4) {
		users.Go(func() { u.write(load, i, choices(i)) })
		users.Go(func() { u.watch(load, choices(10+i)) })
	}
	users.Go(func() { u.reset(load, choices(4)) })
	users.Go(func() { u.settle(load, choices(5)) })
	users.Go(func() { u.fork(choices(6)) })
	time.Sleep(time.Duration(choices(7).Int64N(int64(2 * time.Second))))

	u.stopping.Store(true)
	begun := time.Now()
	err := cp.Stop(ctx)
	took := time.Since(begun)
	endLoad()
	users.Wait()
	return took, errors.Join(append(u.errs, err)...)
}

// fail keeps an error, unless the control plane is about to stop.
func (u *inUse) fail(what string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil && !u.stopping.Load() {
		u.errs = append(u.errs, fmt.Errorf("%s: %w", what, err))
	}
}

// write writes bursts of objects, which a reset deletes all at once.
func (u *inUse) write(ctx context.Context, number uint64, choose *rand.Rand) {
	objects := kubernetes.NewForConfigOrDie(u.cp.Config()).CoreV1().ConfigMaps("default")
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("written-%d-%d", number, i)
		_, _ = objects.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if choose.IntN(4) == 0 {
			_, _ = objects.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
		}
		if choose.IntN(15) == 0 {
			time.Sleep(time.Duration(choose.IntN(100)) * time.Millisecond)
		}
	}
}

// watch watches, again and again, at times as slowly as on a busy machine, so that events
// pile up in the server.
func (u *inUse) watch(ctx context.Context, choose *rand.Rand) {
	objects := kubernetes.NewForConfigOrDie(u.cp.Config()).CoreV1().ConfigMaps("default")
	for ctx.Err() == nil {
		events, err := objects.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		slow := choose.IntN(2) == 0
		for range events.ResultChan() {
			if slow && ctx.Err() == nil {
				time.Sleep(time.Duration(choose.IntN(100)) * time.Millisecond)
			}
		}
	}
}

// reset resets again and again, with a context that does not end: the stop does it.
func (u *inUse) reset(ctx context.Context, choose *rand.Rand) {
	for ctx.Err() == nil {
		u.fail("Reset", u.cp.Reset(context.WithoutCancel(ctx)))
		time.Sleep(time.Duration(choose.IntN(200)) * time.Millisecond)
	}
}

// settle asks again and again, and gives up often: others write.
func (u *inUse) settle(ctx context.Context, choose *rand.Rand) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(choose.IntN(300))*time.Millisecond)
		if _, err := u.cp.Settle(limited); err != nil && !strings.Contains(err.Error(), "the control plane has not settled; ") {
			u.fail("Settle does not say what is late", err)
		}
		cancel()
		time.Sleep(time.Duration(choose.IntN(100)) * time.Millisecond)
	}
}

// fork forks once, and stops the fork.
func (u *inUse) fork(choose *rand.Rand) {
	ctx := context.Background()
	time.Sleep(time.Duration(choose.IntN(1000)) * time.Millisecond)
	snapshot, err := u.cp.Snapshot(ctx)
	if err != nil {
		u.fail("Snapshot", err)
		return
	}
	fork, err := u.cp.Fork(ctx, snapshot)
	if err != nil {
		u.fail("Fork", err)
		return
	}
	if err := fork.Stop(ctx); err != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.errs = append(u.errs, fmt.Errorf("stop the fork: %w", err))
	}
}

// keepOneBusy runs an endless loop beside, until the test ends.
func keepOneBusy(t *testing.T) {
	t.Helper()
	loop := exec.CommandContext(t.Context(), os.Args[0])
	loop.Env = append(os.Environ(), workloadEnv+"="+busy)
	require.NoError(t, loop.Start())
	t.Cleanup(func() {
		_ = loop.Process.Kill()
		_ = loop.Wait()
	})
}
