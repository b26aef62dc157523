// Package checkers judges recorded histories: whether what clients of an API server asked
// and were told keeps the promises of Kubernetes. It has a check for each kind of promise,
// the format of a history, its recorder and its files, and histories that are known to be
// bad. It never talks to a server, never changes a history, and never judges by the clock:
// its results depend on the history alone.
//
// A history comes from a full trace (FromTrace), from a Recorder around the transport of
// any client of any cluster, or from a file (Read). Check judges it:
//
//	report := checkers.Check(ctx, history)
//	if report.Verdict() != checkers.Holds {
//		t.Error(report)
//	}
//
// A verdict is Holds, Broken or Unknown. What a history leaves out is never a reason for
// Broken: a check finds only what can't be explained by anything that may have happened
// unseen. So the more is recorded, the more a check proves. If a history has everything,
// say so: see Closed and Complete of History.
//
// Each check's comment says what it proves, by which words of the Kubernetes
// documentation, and what it does not prove. All checks have this in common: revisions
// (resourceVersions) are numbers that grow with each write of a resource, as KEP-5504
// promises from 1.35 on, and are compared only within one resource of one cluster; objects
// are identified by resource, namespace and name, whatever version of the API is requested;
// requests for subresources are writes of their object if they are answered with it; and
// objects that are stored nowhere, such as reviews, are ignored.
package checkers
