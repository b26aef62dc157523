package search

// fix mends a kernel: it replaces each old text, which is there once.
type fix struct {
	kernel string
	edits  []replacement
}

type replacement struct{ old, new string }

// fixes are for kernels of GoBench. None of them can block any more, in whichever order its goroutines run.
var fixes = []fix{
	// Releases coalescedMu before the replicas' raftMu is taken, so the two are never nested in opposite orders.
	{"cockroach10214", []replacement{
		{
			"defer s.coalescedMu.Unlock()",
			"s.coalescedMu.Unlock()",
		},
	}},
	// The transaction is rolled back, which cancels the context that awaitDone waits for.
	{"cockroach13197", []replacement{
		{
			"db.begin(context.Background())",
			"db.begin(context.Background()).Rollback()",
		},
	}},
	// The test cancels the rows' context at the end, so awaitDone returns.
	{"cockroach13755", []replacement{
		{
			"// FIX: rs.close()",
			"rs.cancel()",
		},
	}},
	// The read lock is released before the call chain that takes it again, so it is not taken recursively.
	{"cockroach16167", []replacement{
		{
			"defer e.systemConfigCond.L.Unlock()",
			"e.systemConfigCond.L.Unlock()",
		},
	}},
	// The wake-up send in Start does not block when a wake-up is already pending.
	{"cockroach24808", []replacement{
		{
			"\tc.ch <- struct{}{}",
			"\tselect {\n\tcase c.ch <- struct{}{}:\n\tdefault:\n\t}",
		},
	}},
	// The read lock is released before the replicas are queued, so it is not taken recursively.
	{"cockroach3710", []replacement{
		{
			"\tfor _, r := range s.replicas {\n\t\ts.raftLogQueue.MaybeAdd(r)\n\t}\n\ts.mu.RUnlock()",
			"\ts.mu.RUnlock()\n\tfor _, r := range s.replicas {\n\t\ts.raftLogQueue.MaybeAdd(r)\n\t}",
		},
	}},
	// Prints the string through the variant that takes no lock, so the read lock is not taken recursively.
	{"cockroach6181", []replacement{
		{
			`%s", rdc)`,
			`%s", rdc.stringLocked())`,
		},
	}},
	// The lease mutex is released before the name cache's is taken, so the two are never nested in opposite orders.
	{"cockroach7504", []replacement{
		{
			"defer s.mu.Unlock()",
			"s.mu.Unlock()",
		},
	}},
	// The mutex is released before exit takes it again.
	{"cockroach9935", []replacement{
		{
			"l.exit(err)",
			"l.mu.Unlock()\n\t\tl.exit(err)\n\t\treturn",
		},
	}},
	// Sync releases the write lock before SetEndpoints takes the read lock.
	{"etcd6708", []replacement{
		{
			"defer c.Unlock()",
			"c.Unlock()",
		},
	}},
	// Status gives up when the node is done.
	{"etcd6857", []replacement{
		{
			"n.status <- c\n\treturn <-c",
			"select {\n\tcase n.status <- c:\n\t\treturn <-c\n\tcase <-n.done:\n\t\treturn Status{}\n\t}",
		},
	}},
	// stop releases the mutex before it waits for the coalescing goroutine.
	{"etcd6873", []replacement{
		{
			"defer wbs.mu.Unlock()\n\tclose(wbs.updatec)",
			"close(wbs.updatec)\n\twbs.mu.Unlock()",
		},
	}},
	// The token is sent to the keeper after the mutex has been released.
	{"etcd7492", []replacement{
		{
			"\tt.simpleTokenKeeper.addSimpleToken()\n\tt.simpleTokensMu.Unlock()",
			"\tt.simpleTokensMu.Unlock()\n\tt.simpleTokenKeeper.addSimpleToken()",
		},
	}},
	// lbWatcher closes doneChan when it returns.
	{"grpc1424", []replacement{
		{
			"lbWatcher(doneChan chan bool) {",
			"lbWatcher(doneChan chan bool) {\n\tdefer close(doneChan)",
		},
	}},
	// The timer function releases the mutex also when the deletion has been called off.
	{"grpc3017", []replacement{
		{
			"return // Missing unlock",
			"ccc.mu.Unlock()\n\t\t\treturn",
		},
	}},
	// URLLock releases the map lock before it waits for the URL's own mutex.
	{"hugo3251", []replacement{
		{
			"l.m[url].Lock()\n\tl.Unlock()",
			"um := l.m[url]\n\tl.Unlock()\n\tum.Lock()",
		},
	}},
	// Rendering a shortcode no longer asks for the word count of the page whose content is just being initialised.
	{"hugo5379", []replacement{
		{
			"p.WordCount()\n\treturn nil",
			"return nil",
		},
	}},
	// The timer channel is drained without blocking after a failed Stop.
	{"istio18454", []replacement{
		{
			"\t<-s.timer.C\n",
			"\tselect {\n\t\t\t\t\tcase <-s.timer.C:\n\t\t\t\t\tdefault:\n\t\t\t\t\t}\n",
		},
	}},
	// The result channel has room for all 100 messages, so distribute never blocks while it holds the locks.
	{"kubernetes1321", []replacement{
		{
			"make(chan struct{})",
			"make(chan struct{}, 100)",
		},
	}},
	// pop releases the lock while it waits for the stop channel.
	{"kubernetes26980", []replacement{
		{
			"select { // block here\n\t\tcase <-stopCh:\n",
			"p.lock.Unlock()\n\t\tselect {\n\t\tcase <-stopCh:\n\t\t\tp.lock.Lock()\n",
		},
	}},
	// The result channel has room for the initial events.
	{"kubernetes38669", []replacement{
		{
			"make(chan Event, chanSize)",
			"make(chan Event, len(initEvents))",
		},
	}},
	// The outer read lock is dropped, so the read lock is not taken recursively.
	{"kubernetes62464", []replacement{
		{
			"\ts.RLock()\n\tdefer s.RUnlock()\n\tif ok",
			"\tif ok",
		},
	}},
	// The reset channel has a buffer, so WriteFrame does not block while it holds the lock.
	{"kubernetes6632", []replacement{
		{
			"resetChan: make(chan bool)",
			"resetChan: make(chan bool, 1)",
		},
	}},
	// The consumer keeps reading until the progress channel is closed.
	{"moby21233", []replacement{
		{
			"if rand.Int31n(2) >= 1 {\n\t\t\t\treturn",
			"if rand.Int31n(2) >= 1 {\n\t\t\t\tcontinue",
		},
	}},
	// Waits for the group after the loop instead of in each iteration.
	{"moby25384", []replacement{
		{
			"\t\tgroup.Wait() // Block here\n\t}",
			"\t}\n\tgroup.Wait()",
		},
	}},
	// The error channel has a buffer, so the send does not need a reader.
	{"moby33293", []replacement{
		{
			"make(chan error)",
			"make(chan error, 1)",
		},
	}},
	// The inner function does not take the lock that its caller already holds.
	{"moby36114", []replacement{
		{
			"svm.Lock() // Double lock here\n\tdefer svm.Unlock()",
			"// the caller holds the lock",
		},
	}},
	// The result channel has a buffer, so the send does not need a reader.
	{"moby4395", []replacement{
		{
			"make(chan error)",
			"make(chan error, 1)",
		},
	}},
	// A failed dial leaves the loop, with the mutex released after it, instead of locking a second time.
	{"moby7559", []replacement{
		{
			"continue",
			"break",
		},
	}},
	// All requests are unlocked first, and only then is each one's answer awaited.
	{"serving2137", []replacement{
		{
			"unlock(req request) {\n\treq.lock.Unlock()",
			"unlock(req request) {",
		},
		{
			"func unlockAll(requests []request) {",
			"func unlockAll(requests []request) {\n\tfor _, lc := range requests {\n\t\tlc.lock.Unlock()\n\t}",
		},
	}},
	// The write lock is released before notify takes the read lock.
	{"syncthing4829", []replacement{
		{
			"\tif len(removed) > 0 {\n\t\tm.notify(nil, removed)\n\t}\n\tm.mut.Unlock()",
			"\tm.mut.Unlock()\n\tif len(removed) > 0 {\n\t\tm.notify(nil, removed)\n\t}",
		},
	}},
}
