// Package checkers owns the judgement of recorded histories: whether what clients of
// an API server asked and were told keeps the promises of Kubernetes. It has a check
// for each kind of promise, the form of a history, its recorder and its files, and
// histories that are known to be bad. It never talks to a server, never changes a
// history, and never judges by the clock: what it says depends on the history alone.
//
// A history comes from a full trace (FromTrace), from a Recorder around the transport
// of any client of any cluster, or from a file (Read). Check judges it:
//
//	report := checkers.Check(ctx, history)
//	if report.Verdict() != checkers.Holds {
//		t.Error(report)
//	}
//
// A verdict is Holds, Broken or Unknown. What a history does not tell is no reason for
// Broken: a check finds only what can't be explained by anything that may have
// happened unseen. So the more is recorded, the more it proves. Say so if it is all:
// see Closed and Complete of History.
//
// Each check says in its comment what it proves, by which words of Kubernetes, and
// what it does not. What is common to all: revisions (resourceVersions) are numbers
// that grow with each write of a resource, as KEP-5504 promises from 1.35 on, and are
// compared only within one resource of one cluster; objects are known by resource,
// namespace and name, whatever version of the API is asked for; subresources are
// writes of their object if they are answered with it; and objects that are stored
// nowhere, such as reviews, are of no interest.
package checkers
