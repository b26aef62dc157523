package sim

// edit replaces text in a file of Go's own source.
type edit struct {
	file  string // below GOROOT/src
	old   string // must be there exactly once, or often times
	new   string
	often int
	why   string
}

func (e edit) times() int { return max(e.often, 1) }

// additions are files that packages of Go's own source get, and where they are here.
var additions = map[string]string{
	"runtime/snowglobe_sim.go":               "overlay/runtime.go.txt",
	"internal/runtime/maps/snowglobe_sim.go": "overlay/maps.go.txt",
}

// edits are all changes to Go's own source, in the order in which a reader meets
// what they change: processors and threads, the run queue, random numbers, hashes,
// timers, garbage.
var edits = []edit{
	{
		file: "runtime/proc.go",
		old:  "\tif procresize(procs) != nil {\n",
		new:  "\tprocs = 1\n\tsched.customGOMAXPROCS = true\n\tif procresize(procs) != nil {\n",
		why:  "one processor: which of two goroutines is first must not depend on how fast two cores are",
	},
	{
		file: "runtime/debug.go",
		old:  "\tret := int(gomaxprocs)\n\tif n <= 0 {\n\t\tunlock(&sched.lock)\n\t\treturn ret\n\t}\n",
		new:  "\tret := int(gomaxprocs)\n\tif n <= 0 || true {\n\t\tunlock(&sched.lock)\n\t\treturn ret\n\t}\n",
		why:  "it stays one",
	},
	{
		file: "runtime/proc.go",
		old:  "} else if pd.schedwhen+forcePreemptNS <= now {",
		new:  "} else if pd.schedwhen+simSlice(pp) <= now {",
		why:  "sysmon preempts a goroutine after 10 ms of wall time",
	},
	{
		file: "runtime/proc.go",
		old:  "\t\t// Don't bother trying to preempt a goroutine in a syscall.\n\t\treturn false\n\t}\n",
		new:  "\t\t// Don't bother trying to preempt a goroutine in a syscall.\n\t\treturn false\n\t}\n\tif gp.bubble != nil && !sched.gcwaiting.Load() && pp.sysmontick.schedwhen+simSliceNS > nanotime() {\n\t\treturn false\n\t}\n",
		why:  "as above: a goroutine of a bubble may have taken the place of the one that sysmon has seen",
	},
	{
		file: "runtime/preempt.go",
		old:  "(gp.preempt || gp.m.p != 0 && gp.m.p.ptr().preempt)",
		new:  "(gp.preempt || gp.bubble == nil && gp.m.p != 0 && gp.m.p.ptr().preempt)",
		why:  "as above: the signal may come when it has",
	},
	{
		file: "runtime/proc.go",
		old:  "!sysretake && int64(pd.syscalltick) != syst {",
		new:  "(!sysretake || thread.gp.bubble != nil) && (int64(pd.syscalltick) != syst || pd.syscallwhen == 0) {",
		why:  "sysmon takes the processor away from a system call of more than 20 us",
	},
	{
		file: "runtime/proc.go",
		old:  "\t\tif runqempty(pp) && sched.nmspinning.Load()+sched.npidle.Load() > 0 && pd.syscallwhen+10*1000*1000 > now {\n",
		new:  "\t\tif thread.gp.bubble != nil && pd.syscallwhen+simSliceNS > now || runqempty(pp) && sched.nmspinning.Load()+sched.npidle.Load() > 0 && pd.syscallwhen+10*1000*1000 > now {\n",
		why:  "as above",
	},
	{
		file: "runtime/runtime2.go",
		old:  "\tbubble  *synctestBubble\n",
		new:  "\tbubble  *synctestBubble\n\n\tsimRand    uint64 // the stream of random numbers of this goroutine\n\tsimResting bool   // it runs when no other of its bubble can\n",
		why:  "each goroutine has a stream of its own, so that one number more in one shifts nothing in another",
	},
	{
		file: "runtime/synctest.go",
		old:  "\tactive  int // other sources of activity\n",
		new:  "\tactive  int // other sources of activity\n\n\tsim *simBubble\n",
		why:  "a bubble has its own streams and its own run queue",
	},
	{
		file: "runtime/synctest.go",
		old:  "\tgp.bubble = bubble\n\tdefer func() {\n\t\tgp.bubble = nil\n",
		new:  "\tgp.bubble = bubble\n\tsimBegin(bubble)\n\tdefer func() {\n\t\tsimEnd(bubble)\n\t\tgp.bubble = nil\n",
		why:  "as above",
	},
	{
		file: "runtime/proc.go",
		old:  "func runqput(pp *p, gp *g, next bool) {\n",
		new:  "func runqput(pp *p, gp *g, next bool) {\n\tif simPut(gp) {\n\t\treturn\n\t}\n",
		why:  "goroutines of a bubble wait in a queue of their own, in which those outside it can't shift anything",
	},
	{
		file: "runtime/proc.go",
		old:  "\tif preempted && sched.gcwaiting.Load() {\n",
		new:  "\tif gp.bubble != nil || preempted && sched.gcwaiting.Load() {\n",
		why:  "also after runtime.Gosched",
	},
	{
		file: "runtime/proc.go",
		old:  "func runqget(pp *p) (gp *g, inheritTime bool) {\n",
		new:  "func runqget(pp *p) (gp *g, inheritTime bool) {\n\tif pp.schedtick&1 == 0 {\n\t\tif gp := simGet(); gp != nil {\n\t\t\treturn gp, false\n\t\t}\n\t}\n",
		why:  "the seed chooses the next goroutine; neither kind waits for the other for ever",
	},
	{
		file: "runtime/proc.go",
		old:  "\t\tt := pp.runqtail\n\t\tif t == h {\n\t\t\treturn nil, false\n\t\t}\n\t\tgp := pp.runq[h%uint32(len(pp.runq))].ptr()\n",
		new:  "\t\tt := pp.runqtail\n\t\tif t == h {\n\t\t\treturn simGet(), false\n\t\t}\n\t\tgp := pp.runq[h%uint32(len(pp.runq))].ptr()\n",
		why:  "as above",
	},
	{
		file: "runtime/proc.go",
		old:  "\t\t\treturn head == tail && runnext == 0\n",
		new:  "\t\t\treturn head == tail && runnext == 0 && sim.runnable.Load() == 0\n",
		why:  "as above",
	},
	{
		file: "runtime/proc.go",
		old:  "\t\tnewg.bubble = callergp.bubble\n",
		new:  "\t\tnewg.bubble = callergp.bubble\n\t\tsimBorn(newg, callergp)\n",
		why:  "a goroutine's stream begins with a number of its parent's",
	},
	{
		file: "runtime/rand.go",
		old:  "\tglobalRand.state.Init(*seed)\n",
		new:  "\tclear(seed[:])\n\tglobalRand.state.Init(*seed)\n",
		why:  "keys of hash functions, and what package variables are initialized with",
	},
	{
		file: "runtime/rand.go",
		old:  "func rand() uint64 {\n",
		new:  "func rand() uint64 {\n\tif x, ok := simRand(); ok {\n\t\treturn x\n\t}\n",
		why:  "maps, math/rand, jitter; a stream a thread depends on which threads there are",
	},
	{
		file: "runtime/select.go",
		old:  "cheaprandn(uint32(norder + 1))",
		new:  "simRandn(uint32(norder + 1))",
		why:  "which case of a select; locks, profiles and caches use cheaprand too",
	},
	{
		file: "runtime/time.go",
		old:  "\t\t\tt.rand = cheaprand()\n",
		new:  "\t\t\tif t.rand == 0 {\n\t\t\t\tt.rand = simTimer(getg().bubble)\n\t\t\t}\n",
		why:  "timers due at one moment; once each, since one that nobody waits for may or may not have left the heap when it comes back",
	},
	{
		file: "runtime/time.go",
		old:  "return tw.timer.rand < other.timer.rand",
		new:  "return simTie(tw) < simTie(other)",
		why:  "as above",
	},
	{
		file: "os/tempfile.go",
		old:  "func nextRandom() string {\n",
		new:  "func simRandom(try int) string {\n\tif try > 0 {\n\t\treturn strconv.FormatUint(uint64(Getpid()), 10) + \"-\" + strconv.FormatUint(uint64(try), 10)\n\t}\n\treturn nextRandom()\n}\n\nfunc nextRandom() string {\n",
		why:  "a temporary file whose name another process of the seed has: with one number more, all that follows would shift",
	},
	{
		file:  "os/tempfile.go",
		old:   "name := prefix + nextRandom() + suffix",
		new:   "name := prefix + simRandom(try) + suffix",
		often: 2,
		why:   "as above",
	},
	{
		file: "runtime/signal_unix.go",
		old:  "\t\tensureSigM()\n\t\tenableSigChan <- sig\n\t\t<-maskUpdatedChan\n",
		new:  "\t\tif getg().bubble == nil {\n\t\t\tensureSigM()\n\t\t\tenableSigChan <- sig\n\t\t\t<-maskUpdatedChan\n\t\t}\n",
		why:  "signal.Notify and Stop wait for a goroutine outside; its thread has to unblock a signal only if whoever started the program has blocked it",
	},
	{
		file: "runtime/signal_unix.go",
		old:  "\t\tensureSigM()\n\t\tdisableSigChan <- sig\n\t\t<-maskUpdatedChan\n",
		new:  "\t\tif getg().bubble == nil {\n\t\t\tensureSigM()\n\t\t\tdisableSigChan <- sig\n\t\t\t<-maskUpdatedChan\n\t\t}\n",
		why:  "as above",
	},
	{
		file: "crypto/internal/sysrand/rand.go",
		old:  "func Read(b []byte) {\n",
		new:  "func Read(b []byte) {\n\tif simFill(b) {\n\t\treturn\n\t}\n",
		why:  "UIDs, tokens, keys, certificates",
	},
	{
		file: "crypto/internal/sysrand/rand.go",
		old:  "//go:linkname fatal\n",
		new:  "//go:linkname fatal\nfunc fatal(string)\n\n//go:linkname simFill\n//go:noescape\nfunc simFill(b []byte) bool\n",
		why:  "as above",
	},
	{
		file: "crypto/internal/sysrand/rand.go",
		old:  "func fatal(string)\n\nvar testingOnlyFailRead bool\n",
		new:  "var testingOnlyFailRead bool\n",
		why:  "as above",
	},
	{
		file: "internal/sync/mutex.go",
		old:  "\tstarvationThresholdNs = 1e6\n",
		new:  "\tstarvationThresholdNs = 1 << 62\n",
		why:  "mutexes change hands in another way after 1 ms of wall time",
	},
	{
		file: "runtime/mheap.go",
		old:  "\t_KindSpecialSecret = 10\n",
		new:  "\t_KindSpecialSecret = 10\n\t// _KindSpecialSimName gives an object a name that is not its address.\n\t_KindSpecialSimName = 11\n",
		why:  "an object has a name that stands for its address",
	},
	{
		file: "runtime/mheap.go",
		old:  "\tcase _KindSpecialBubble:\n",
		new:  "\tcase _KindSpecialBubble, _KindSpecialSimName:\n",
		why:  "as above",
	},
	{
		file: "runtime/alg.go",
		old:  "func typehash(t *_type, p unsafe.Pointer, h uintptr) uintptr {\n",
		new:  "func typehash(t *_type, p unsafe.Pointer, h uintptr) uintptr {\n\tif simHoldsAddress(t) {\n\t\treturn simHash(t, p, h)\n\t}\n",
		why:  "the order of a map keyed by pointers depends on addresses, and these on every allocation before",
	},
	{file: "internal/runtime/maps/runtime.go", old: "typ.Hasher(", new: "hashKey(typ, ", often: 3, why: "as above"},
	{file: "internal/runtime/maps/table_debug.go", old: "typ.Hasher(", new: "hashKey(typ, ", why: "as above"},
	{file: "internal/runtime/maps/table.go", old: "typ.Hasher(", new: "hashKey(typ, ", often: 4, why: "as above"},
	{file: "internal/runtime/maps/map.go", old: "typ.Hasher(", new: "hashKey(typ, ", often: 5, why: "as above"},
	{file: "internal/runtime/maps/runtime_fast64.go", old: "typ.Hasher(", new: "hashKey(typ, ", often: 4, why: "as above"},
	{
		file: "runtime/mgc.go",
		old:  "\tswitch t.kind {\n\tcase gcTriggerHeap:\n\t\ttrigger, _ := gcController.trigger()\n",
		new:  "\tif t.kind != gcTriggerCycle && simHolds() {\n\t\treturn false\n\t}\n\tswitch t.kind {\n\tcase gcTriggerHeap:\n\t\ttrigger, _ := gcController.trigger()\n",
		why:  "a collection makes goroutines wait, at a moment that depends on the wall clock",
	},
	{
		file: "runtime/synctest.go",
		old:  "\t\tgopark(synctestidle_c, nil, waitReasonSynctestRun, traceBlockSynctest, 0)\n",
		new:  "\t\tgopark(synctestidle_c, nil, waitReasonSynctestRun, traceBlockSynctest, 0)\n\t\tsimCollect(bubble)\n",
		why:  "so garbage is collected where nothing runs, after a number of choices",
	},
}
