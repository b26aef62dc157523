package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"snowglobe.test/envtest/sim"
)

// between are operations at which another goroutine may get the processor, each with what has to be done before.
var between = []struct {
	name string
	in   func(*meeting) func()
}{
	{"Lock", func(m *meeting) func() { return m.mu.Lock }},
	{"TryLock", func(m *meeting) func() { return func() { m.mu.TryLock() } }},
	{"Unlock", func(m *meeting) func() { m.mu.Lock(); return m.mu.Unlock }},
	{"RLock", func(m *meeting) func() { return m.rw.RLock }},
	{"TryRLock", func(m *meeting) func() { return func() { m.rw.TryRLock() } }},
	{"RUnlock", func(m *meeting) func() { m.rw.RLock(); return m.rw.RUnlock }},
	{"send", func(m *meeting) func() { return func() { m.c <- 0 } }},
	{"receive", func(m *meeting) func() { m.c <- 0; return func() { <-m.c } }},
	{"receive and ok", func(m *meeting) func() { m.c <- 0; return func() { _, _ = <-m.c } }},
	{"close", func(m *meeting) func() { return func() { close(m.c) } }},
	{"try to send", func(m *meeting) func() {
		return func() {
			select {
			case m.c <- 0:
			default:
			}
		}
	}},
	{"try to receive", func(m *meeting) func() {
		return func() {
			select {
			case <-m.c:
			default:
			}
		}
	}},
	{"select", func(m *meeting) func() {
		return func() {
			select {
			case <-m.c:
			case m.c <- 0:
			}
		}
	}},
	{"Add", func(m *meeting) func() { return func() { m.all.Add(1) } }},
	{"WaitGroup.Wait", func(m *meeting) func() { return m.all.Wait }},
	{"Signal", func(m *meeting) func() { return m.cond.Signal }},
	{"Broadcast", func(m *meeting) func() { return m.cond.Broadcast }},
	{"go", func(m *meeting) func() { return func() { go func() {}() } }},
}

// meeting is where two goroutines meet.
type meeting struct {
	mu   sync.Mutex
	rw   sync.RWMutex
	c    chan int
	all  sync.WaitGroup
	cond *sync.Cond
}

// orders does each operation between a write and a read of a variable that another goroutine writes as well, under
// many seeds, and says which of the two the read has seen.
func orders(say func(string, ...any)) {
	seen := map[string][]int{}
	for seed := range uint64(100) {
		sim.Seed(number + seed)
		for _, op := range between {
			m := &meeting{c: make(chan int, 2)}
			m.cond = sync.NewCond(&m.mu)
			do := op.in(m)
			x := 0
			var other sync.WaitGroup
			other.Go(func() { x = 2 })
			x = 1
			do()
			if !slices.Contains(seen[op.name], x) {
				seen[op.name] = append(seen[op.name], x)
			}
			other.Wait()
		}
	}
	for _, op := range between {
		slices.Sort(seen[op.name])
		say("%s: %v", op.name, seen[op.name])
	}
}

// midst are operations before which another goroutine may come in. They report whether it did.
var midst = []struct {
	name string
	do   func(came *bool) bool
}{
	{"take a second mutex", func(came *bool) bool {
		var first, second sync.Mutex
		first.Lock()
		before := *came
		second.Lock() // and keep both: under the next seed they don't count
		return *came != before
	}},
	{"go on after a start", func(came *bool) bool {
		before := *came
		go func() {}()
		return *came != before
	}},
	{"start", func(came *bool) bool {
		before, during := *came, false
		var started sync.WaitGroup
		started.Go(func() { during = *came })
		started.Wait()
		return during != before
	}},
}

// overtaken counts under how many of 300 seeds a goroutine comes in before each of those.
func overtaken(say func(string, ...any)) {
	for _, op := range midst {
		count := 0
		for seed := range uint64(300) {
			sim.Seed(number + seed)
			ready, gate, came := make(chan int), make(chan int, 1), false
			var other sync.WaitGroup
			other.Go(func() {
				ready <- 1
				gate <- 1
				came = true
			})
			<-ready
			if op.do(&came) {
				count++
			}
			other.Wait()
		}
		say("%s: %d", op.name, count)
	}
}

// held sleeps while others want a mutex: to lock it, to read and to write.
func held(say func(string, ...any)) {
	begun := time.Now()
	m := &meeting{}
	var all sync.WaitGroup
	for _, lock := range []func() func(){
		func() func() { m.mu.Lock(); return m.mu.Unlock },
		func() func() { m.rw.RLock(); return m.rw.RUnlock },
		func() func() { m.rw.RLock(); return m.rw.RUnlock },
		func() func() { m.rw.Lock(); return m.rw.Unlock },
		func() func() { m.rw.Lock(); return m.rw.Unlock },
		func() func() { m.rw.RLock(); return m.rw.RUnlock },
		func() func() { m.mu.Lock(); return m.mu.Unlock },
	} {
		all.Go(func() {
			unlock := lock()
			time.Sleep(time.Hour)
			unlock()
		})
	}
	all.Wait()
	say("at least %t", time.Since(begun) >= 3*time.Hour)
}

// cycle takes two mutexes in two orders.
func cycle(func(string, ...any)) {
	var first, second sync.Mutex
	var all sync.WaitGroup
	for _, locks := range [][]*sync.Mutex{{&first, &second}, {&second, &first}} {
		all.Go(func() {
			locks[0].Lock()
			time.Sleep(time.Second)
			locks[1].Lock()
		})
	}
	all.Wait()
}

// left leaves goroutines that wait for what nobody will do.
func left(func(string, ...any)) {
	m := &meeting{}
	m.mu.Lock()
	m.rw.RLock()
	go m.mu.Lock()
	go m.rw.Lock()
	go func() { <-m.c }()
	time.Sleep(1)
	go m.rw.RLock()
	time.Sleep(1)
	fmt.Println("left")
}

// spin never gives the processor to anyone.
func spin(func(string, ...any)) {
	for n := 0; n >= 0; n &= 0xffff {
		n++
	}
}

// spinYielding gives it to one that does the same.
func spinYielding(func(string, ...any)) {
	go yieldForEver()
	yieldForEver()
}

func yieldForEver() {
	for {
		runtime.Gosched()
	}
}

// rare counts how often all ten operations of one goroutine come before the only one of another, which a coin at
// each of them shows once in a thousand runs.
func rare(say func(string, ...any)) {
	found := 0
	for seed := range uint64(100) {
		sim.Seed(number + seed)
		c := make(chan int, 100)
		go func() { c <- 0 }()
		for n := range 10 {
			c <- n + 1
		}
		time.Sleep(1)
		last := 0
		for range 11 {
			last = <-c
		}
		if last == 0 {
			found++
		}
	}
	say("%d", found)
}
