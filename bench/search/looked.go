package search

// looked says why tests that are not of this project fail under some seeds, by the package and the test.
var looked = map[string]string{
	"k8s.io/client-go/tools/cache.TestPanicPropagated": unlocked,
	"k8s.io/client-go/tools/cache.TestResetWatch":      unlocked,
	"k8s.io/client-go/tools/cache.TestReflectorListAndWatchInitConnBackoff": "a false alarm of ours. goleak finds a " +
		"goroutine that sleeps for 100 us. Time stands still in a bubble when its test has ended, so it never wakes.",
	"k8s.io/client-go/tools/cache.TestReflectorListExtract": "a false alarm of ours. A finalizer sends to a channel, " +
		"and finalizers run outside the bubble that the channel is of.",
	"k8s.io/client-go/tools/cache.TestReflectorRespectStoreTransformer": "the test relies on luck. It ends when three " +
		"of four events have come, and the reflector then closes the channel that the fourth is being sent to.",
	"k8s.io/client-go/tools/leaderelection.TestTryAcquireOrRenewLeases": "the test relies on luck. Its record has a " +
		"lease of 0 s, which counts as not expired only if time passes between two readings of the clock.",
	"k8s.io/apiserver/pkg/storage/cacher.TestWatchListIsSynchronisedWhenNoEventsFromStoreReceived": "it fails by " +
		"itself without this project, too. It needs a test before it in the package to have said that the store can " +
		"report progress.",
	"k8s.io/apiserver/pkg/storage/cacher.TestWatchNotHangingOnStartupFailure": "the test relies on luck. The cache is " +
		"ready between its list and its watch, which fails; if Watch is called then, it dereferences the field " +
		"selector, which this test leaves out.",
	"sigs.k8s.io/controller-runtime/pkg/internal/controller.TestSource": "it starts the etcd of envtest, " +
		"which was not installed.",
}

const unlocked = "the test relies on luck. FakeControllerSource.Shutdown leaves its mutex locked, on purpose, and a " +
	"reflector that comes to Watch later waits for ever, which goleak finds."

// notLooked is what a page says of a failure that nobody has looked at.
const notLooked = "not looked at yet"

func lookedAt(of, test string) string {
	if why, ok := looked[of+"."+test]; ok {
		return why
	}
	return notLooked
}
