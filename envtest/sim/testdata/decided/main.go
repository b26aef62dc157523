// Command decided prints what a seed decides: decided WORKLOAD SEED. With a third
// argument goroutines outside the bubble keep the processor busy meanwhile. Without a seed,
// decided WORKLOAD copies, it makes copies of itself, each with the seed that is its number, and
// with decided WORKLOAD own it has the seed that a test has by itself.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"snowglobe.test/envtest/sim"
)

var workloads = map[string]func(say func(string, ...any)){
	"selects":    selects,
	"goroutines": goroutines,
	"long":       long,
	"maps":       maps,
	"contexts":   contexts,
	"timers":     timers,
	"waits":      waits,
	"bytes":      func(say func(string, ...any)) { say("%s %d", rand.Text(), mathrand.Uint64()) },
	"files":      files,
	"signals":    signals,
	"garbage":    garbage,
	"race":       race,
	"syscalls":   systemCalls,
	"world":      world,
	"ends":       ends,
	"outside":    outside,
	"memory":     memory,
	"orders":     orders,
	"overtaken":  overtaken,
	"held":       held,
	"cycle":      cycle,
	"left":       left,
	"spin":       spin,
	"yield":      spinYielding,
	"rare":       rare,
}

// old is memory that was there before the copies.
var old [32 << 20]byte

// number is the seed.
var number uint64

func main() {
	copies, own := os.Args[2] == "copies", os.Args[2] == "own"
	var seed uint64
	var err error
	if !copies && !own {
		seed, err = strconv.ParseUint(os.Args[2], 10, 64)
	}
	workload := workloads[os.Args[1]]
	if err != nil || workload == nil {
		fmt.Fprintln(os.Stderr, "usage: decided WORKLOAD SEED")
		os.Exit(2)
	}
	runtime.GOMAXPROCS(4) // is in vain
	kept := fragments()
	defer runtime.KeepAlive(kept)
	if len(os.Args) > 3 {
		go disturb()
	}
	ask()
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // the goroutine that hands out signals is outside
	synctest.Test(&testing.T{}, func(*testing.T) {
		if copies {
			if seed, copies = sim.Copies(); !copies {
				return
			}
		}
		number = seed
		if !own && !sim.Seed(seed) {
			fmt.Fprintln(os.Stderr, "not in sim mode")
			os.Exit(1)
		}
		var mu sync.Mutex
		workload(func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Printf(format+"\n", args...)
		})
	})
}

// files makes a temporary folder, which another run of the seed may have made before.
func files(say func(string, ...any)) {
	_, err := os.MkdirTemp("", "decided-")
	say("%v %d", err, mathrand.Uint64())
}

// signals wants one and no longer does, again and again, in several goroutines.
func signals(say func(string, ...any)) {
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			for range 20 {
				c := make(chan os.Signal, 1)
				signal.Notify(c, syscall.SIGTERM)
				say("%d has %d", i, mathrand.IntN(100))
				signal.Stop(c)
				runtime.Gosched()
			}
		})
	}
	all.Wait()
}

// disturb allocates, and takes the processor at moments that no seed decides.
func disturb() {
	for {
		_ = make([]byte, mathrand.IntN(10_000))
		_ = make(chan time.Time, 1)
		time.Sleep(20 * time.Microsecond)
	}
}

func selects(say func(string, ...any)) {
	a, b := make(chan int, 100), make(chan int, 100)
	for range 100 {
		select {
		case a <- 1:
			say("a")
		case b <- 1:
			say("b")
		}
	}
}

// goroutines take turns at every way to wait, and at none.
func goroutines(say func(string, ...any)) {
	var all sync.WaitGroup
	var mutex sync.Mutex
	passed := make(chan int)
	for i := range 20 {
		all.Go(func() {
			for j := range 30 {
				switch mathrand.IntN(5) {
				case 0:
					runtime.Gosched()
				case 1:
					time.Sleep(time.Duration(mathrand.IntN(3)) * time.Millisecond)
				case 2:
					mutex.Lock()
					runtime.Gosched()
					mutex.Unlock()
				case 3:
					go func() { passed <- i }()
					say("%d has passed %d", i, <-passed)
				}
				say("%d is at %d", i, j)
			}
		})
	}
	all.Wait()
	sim.Yield()
	say("alone: %t", sim.Alone())
}

// long runs for longer than a goroutine may elsewhere.
func long(say func(string, ...any)) {
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			sum := uint64(0)
			for j := range uint64(50_000_000) {
				sum = sum*31 + j
			}
			say("%d has %d", i, sum)
		})
	}
	all.Wait()
}

type object struct{ number int }

// maps have keys whose hash is that of an address.
func maps(say func(string, ...any)) {
	type inside struct {
		object *object
		name   string
	}
	pointers, anys, chans, structs := map[*object]int{}, map[any]int{}, map[chan int]int{}, map[inside]int{}
	var synced sync.Map
	for i := range 100 {
		o := &object{i}
		pointers[o], anys[o], chans[make(chan int)], structs[inside{o, "x"}] = i, i, i, i
		synced.Store(o, i)
	}
	for _, i := range pointers {
		say("pointer %d", i)
	}
	for _, i := range anys {
		say("any %d", i)
	}
	for _, i := range chans {
		say("chan %d", i)
	}
	for _, i := range structs {
		say("struct %d", i)
	}
	synced.Range(func(_, i any) bool { say("synced %d", i); return true })
}

// contexts are cancelled in the order of a map that their parent keeps.
func contexts(say func(string, ...any)) {
	parent, cancel := context.WithCancel(context.Background())
	for i := range 50 {
		child, done := context.WithCancel(parent)
		context.AfterFunc(child, func() { say("cancelled %d", i); done() })
	}
	cancel()
}

// timers are due at one moment.
func timers(say func(string, ...any)) {
	for i := range 50 {
		time.AfterFunc(time.Second, func() { say("timer %d", i) })
	}
	time.Sleep(2 * time.Second)
}

// waits are for two timers each, due at one moment.
func waits(say func(string, ...any)) {
	var all sync.WaitGroup
	for i := range 2000 {
		all.Go(func() {
			a, b := time.NewTimer(time.Second), time.NewTimer(time.Second)
			select {
			case <-a.C:
				say("%d a", i)
			case <-b.C:
				say("%d b", i)
			}
		})
	}
	all.Wait()
}

// fragments leaves holes in the heap, so that a channel may have a lower address than an
// older one; which one does depends on what else is allocated.
func fragments() (kept []chan time.Time) {
	var all []chan time.Time
	for range 50_000 {
		all = append(all, make(chan time.Time, 1))
	}
	for i, c := range all {
		if i%64 == 0 || mathrand.IntN(4) == 0 {
			kept = append(kept, c)
		}
	}
	return kept
}

// garbage is made while goroutines run, enough for several collections. A pool
// that a collection empties is the part of it that a program can see.
func garbage(say func(string, ...any)) {
	made := 0
	pool := sync.Pool{New: func() any { made++; return new(object) }}
	for i := range 300 {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				o := pool.Get()
				_, _ = io.Discard.Write(make([]byte, 10_000))
				for range 10 {
					runtime.Gosched()
				}
				pool.Put(o)
			})
		}
		all.Wait()
		time.Sleep(time.Millisecond)
		say("%d: %d made", i, made)
	}
}

// race loses an update when one goroutine runs between two lines of the other.
func race(say func(string, ...any)) {
	balance := 0
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			before := balance
			runtime.Gosched() // a call that may yield, as any
			balance = before + 1
		})
	}
	all.Wait()
	say("balance %d", balance)
}

// systemCalls is one that waits for the input, while another goroutine could run.
func systemCalls(say func(string, ...any)) {
	var all sync.WaitGroup
	all.Go(func() {
		say("reading")
		b := make([]byte, 1)
		_, err := os.Stdin.Read(b)
		say("read: %v", err)
	})
	all.Go(func() { say("another") })
	all.Wait()
}

// ends ends the process as the seed says.
func ends(func(string, ...any)) {
	switch {
	case number >= 2_000:
		for {
		}
	case number >= 1_000:
		_ = syscall.Kill(os.Getpid(), syscall.Signal(number-1_000))
		select {}
	case number > 0:
		os.Exit(int(number))
	}
}

// memory writes to memory that was there before, and says how often the processor had to ask for a page.
func memory(say func(string, ...any)) {
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	for i := 0; i < len(old); i += os.Getpagesize() {
		old[i]++
	}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	say("%d", after.Minflt-before.Minflt)
	sim.Exit()
}

// outside needs the poller, other threads, a garbage collection and another process.
func outside(say func(string, ...any)) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		runtime.GC()
		fmt.Fprint(w, "hello ", req.URL.Path)
	})}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i := range 3 {
		resp, err := client.Get(fmt.Sprintf("http://%s/%d", listener.Addr(), i))
		if err != nil {
			panic(err)
		}
		text, err := io.ReadAll(resp.Body)
		say("%s %v %v", text, err, resp.Body.Close())
	}
	out, err := exec.Command("echo", "world").Output()
	say("%s%v", out, err)
}

// home is a package's variable, made of the environment.
var home = os.Getenv("HOME")

// ask is for what the first caller outside finds out for all that ask later.
func ask() (proxy *url.URL, zone string, name string) {
	proxy, _ = http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: "snowglobe.test"}})
	zone = time.Unix(0, 0).Format(time.RFC3339)
	if who, err := user.Current(); err == nil {
		name = who.Username + " in " + who.HomeDir
	}
	return proxy, zone, name
}

// world says what is seen of the machine, and of what the program has set itself.
func world(say func(string, ...any)) {
	proxy, zone, name := ask()
	host, err := os.Hostname()
	say("%s on %s %v, by %v, at %s, %s", name, host, err, proxy, zone, home)
	other, err := time.LoadLocation("Pacific/Chatham")
	say("%s %v", time.Unix(0, 0).In(other).Format(time.RFC3339), err)
	var seen []string
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !slices.Contains(places, name) && len(variable) < 1000 {
			seen = append(seen, variable)
		}
	}
	say("%s", strings.Join(seen, " "))
	_, before := os.LookupEnv("KUBECONFIG")
	_ = os.Setenv("KUBECONFIG", "mine")
	_ = os.Unsetenv("LANG")
	_, left := os.LookupEnv("LANG")
	elsewhere := make(chan string)
	go func() { elsewhere <- os.Getenv("KUBECONFIG") }()
	say("KUBECONFIG %t, then %s, %s; LANG then %t", before, os.Getenv("KUBECONFIG"), <-elsewhere, left)
}

// places are variables that no run depends on.
var places = []string{"PATH", "TMPDIR", "GOCOVERDIR", "GOGC", "GOTRACEBACK"}
