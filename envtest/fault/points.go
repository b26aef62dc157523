package fault

import "slices"

// The points, or what comes before the last part of their names.
const (
	StoreRange       = "store/range"
	StoreList        = "store/list"
	StoreCount       = "store/count"
	StorePut         = "store/put"
	StoreDelete      = "store/delete"
	StoreTxn         = "store/txn"
	StoreWatchCreate = "store/watch-create"
	StoreWatchEvent  = "store/watch-event"
	StoreProgress    = "store/progress"
	StoreLeaseGrant  = "store/lease-grant"
	StoreCompact     = "store/compact"
	AuthToken        = "auth/token"
	AuthCertificate  = "auth/certificate"

	HTTPPoint       = "http/"       // and the verb
	WatchPoint      = "watch/"      // and the resource
	StagePoint      = "stage/"      // and the stage
	HookPoint       = "hook/"       // and the hook
	SignalPoint     = "signal/"     // and the signal
	InformerPoint   = "informer/"   // and the resource
	CachePoint      = "cache/"      // and the resource
	WebhookPoint    = "webhook/"    // and the webhook
	APIServicePoint = "apiservice/" // and the APIService
	EgressPoint     = "egress/"     // and the network
)

// What the entries of the catalogue have in common.
var (
	object   = []string{"server", "resource", "namespace", "name", "key", "caller"}
	delivery = []string{"server", "namespace", "name", "key", "caller"}
	onServer = []string{"server"}
	// What the server asks of others, and of itself.
	informing = []string{"server", "verb", "namespace", "name"}
	reviewed  = []string{"server", "verb", "resource", "namespace", "name", "caller"}

	// A call that gets an answer.
	call      = []ActionKind{Hold, Delay, Fail, LoseReply, Drop, Cancel, Compact, LoseLeader, Crash}
	callTwice = append(slices.Clip(call), Duplicate)
	// A call to a server that knows nothing of the store.
	foreign = []ActionKind{Hold, Delay, Fail, LoseReply, Drop, Duplicate, Cancel, Crash}
	// Something on a stream.
	event = []ActionKind{Hold, Delay, Drop, Duplicate, Cancel, Compact, LoseLeader, Crash}
	// Something that happens to no caller in particular.
	moment = []ActionKind{Hold, Delay, Drop, Crash}

	noStore   = []Failure{Unavailable, NoLeader, LeaderChanged, RequestTimedOut, Timeout}
	oldStore  = append(slices.Clip(noStore), Compacted)
	httpCodes = []Failure{TooManyRequests, InternalError, ServiceUnavailable, GatewayTimeout, Gone, Reset, EOF}
	broke     = []Failure{Reset, EOF}
	away      = append(slices.Clip(httpCodes), Refused, Unreachable)

	httpVerbs = []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy",
		"post", "put", "head", "options",
	}
)

// catalogue is closed, and never changed.
var catalogue = []*PointKind{
	{Name: StoreRange, Meaning: "the store is asked for one key", Fields: object, Actions: call, Failures: oldStore,
		Example: "fail store/range resource=configmaps name=default/a nth=2 with=unavailable"},
	{Name: StoreList, Meaning: "the store is asked for a page of keys", Fields: object, Actions: call, Failures: oldStore,
		Example: "compact store/list resource=pods nth=2"},
	{Name: StoreCount, Meaning: "the store is asked how many keys there are", Fields: object, Actions: call, Failures: oldStore,
		Example: "delay store/count resource=pods by=2s"},
	{Name: StorePut, Meaning: "a key is written, provided that it has not changed in the meantime", Fields: object, Actions: callTwice, Failures: noStore,
		Example: "lose-reply store/put resource=configmaps name=default/a times=1 with=request-timed-out"},
	{Name: StoreDelete, Meaning: "a key is deleted, provided that it has not changed in the meantime", Fields: object, Actions: callTwice, Failures: noStore,
		Example: "fail store/delete resource=pods with=leader-changed times=1"},
	{Name: StoreTxn, Meaning: "any other transaction", Fields: object, Actions: callTwice, Failures: noStore,
		Example: "fail store/txn every=3 with=no-leader"},
	// Etcd's client makes up for all else that a watch can fail with.
	{Name: StoreWatchCreate, Meaning: "a watch on the store begins", Fields: object, Failures: []Failure{NoLeader, Compacted},
		Actions: []ActionKind{Hold, Delay, Fail, Drop, Cancel, Compact, LoseLeader, Crash},
		Example: "fail store/watch-create resource=widgets.example.com with=compacted times=1"},
	{Name: StoreWatchEvent, Meaning: "the store is about to send a change to a watch", Verbs: []string{"put", "delete"}, Fields: append(slices.Clip(object), "verb"), Actions: event,
		Example: "delay store/watch-event resource=pods by=3s probability=0.2 optional"},
	{Name: StoreProgress, Meaning: "a watch asks how far it has got, or the store tells it", Verbs: []string{"request", "notify"},
		Fields: []string{"server", "verb", "resource"}, Actions: []ActionKind{Hold, Delay, Drop, Crash},
		Example: "drop store/progress verb=notify resource=pods"},
	{Name: StoreLeaseGrant, Meaning: "a lease is requested from the store", Fields: []string{"server", "resource"}, Actions: call, Failures: noStore,
		Example: "fail store/lease-grant with=unavailable times=1"},
	{Name: StoreCompact, Meaning: "the store is told to forget old revisions", Fields: onServer, Actions: callTwice, Failures: oldStore,
		Example: "hold store/compact"},
	// What waits for a store out of reach fails as clients with unanswered pings do.
	{Name: StorePath, Meaning: "everything between a server and its store: requests wait, for up to 40 s, and watches resume later where they left off", Fields: onServer,
		Actions: []ActionKind{Partition}, Example: "partition store server=apiserver-1 after=5s for=30s"},

	{Name: HTTPPoint + "<verb>", Meaning: "a request is about to be handled", Names: httpVerbs, Phases: []Phase{Before}, Fields: object, Actions: callTwice, Failures: httpCodes,
		Example: "lose-reply http/update resource=leases.coordination.k8s.io caller=system:apiserver times=1"},
	{Name: HTTPPoint + "<verb>", Meaning: "a request has been handled, and the answer is about to be sent", Names: httpVerbs, Phases: []Phase{After}, Fields: object, Failures: httpCodes,
		Actions: []ActionKind{Hold, Delay, Fail, Drop, Cancel, Compact, LoseLeader, Crash},
		Example: "fail http/create phase=after resource=pods with=503 retry-after=2s times=1"},
	{Name: HTTPPoint + "<verb>", Meaning: "a part of an answer is about to be sent", Names: httpVerbs, Phases: []Phase{Stream}, Fields: object, Failures: broke,
		Actions: []ActionKind{Hold, Delay, Fail, Drop, Cancel, Compact, LoseLeader, Crash},
		Example: "fail http/watch phase=stream resource=pods nth=10 with=eof"},

	{Name: WatchPoint + "<resource>", Meaning: "an event is about to be sent to a client's watch", Verbs: []string{"added", "modified", "deleted", "bookmark", "error"},
		Fields: append(slices.Clip(delivery), "verb"), Actions: append(slices.Clip(event), Fail), Failures: []Failure{Gone, Reset, EOF},
		Example: "duplicate watch/configmaps verb=modified name=default/a"},

	{Name: ClientPath, Meaning: "everything between a client in this process and a server: requests in flight time out, and the server is unreachable",
		Fields: []string{"server", "name", "caller"}, Actions: []ActionKind{Partition}, Example: "partition client server=apiserver-1 name=client-1"},

	{Name: StagePoint + "<stage>", Meaning: "a stage of the server's assembly is about to begin", Fields: onServer, Failures: []Failure{PlainError},
		Actions: []ActionKind{Hold, Delay, Fail, Crash},
		Example: "hold stage/aggregator"},
	{Name: HookPoint + "<hook>", Meaning: "a post-start hook is about to run", Verbs: []string{"post-start"}, Fields: []string{"server", "verb"}, Failures: []Failure{PlainError},
		Actions: []ActionKind{Hold, Delay, Fail, Drop, Crash},
		Example: "hold hook/start-apiextensions-informers"},
	{Name: HookPoint + "<hook>", Meaning: "a pre-shutdown hook is about to run", Verbs: []string{"pre-shutdown"}, Fields: []string{"server", "verb"}, Failures: []Failure{PlainError},
		Actions: []ActionKind{Hold, Delay, Fail, Drop, Crash},
		Example: "delay hook/stop-kubernetes-service-controller verb=pre-shutdown by=10s"},
	{Name: SignalPoint + "<signal>", Meaning: "a lifecycle signal is about to fire", Fields: onServer, Actions: append(slices.Clip(moment), Fire),
		Example: "hold signal/MuxAndDiscoveryComplete"},

	{Name: InformerPoint + "<resource>", Meaning: "one of the server's informers is about to list, with a list or with a watch that begins with everything, or to continue with a watch", Verbs: []string{"list", "watch"},
		Fields: informing, Actions: foreign, Failures: httpCodes,
		Example: "fail informer/secrets verb=list with=500 times=2"},
	{Name: InformerPoint + "<resource>", Meaning: "one of the server's informers is about to get the answer to its list", Verbs: []string{"sync"}, Fields: informing, Actions: moment,
		Example: "hold informer/customresourcedefinitions.apiextensions.k8s.io verb=sync"},
	{Name: CachePoint + "<resource>", Meaning: "a watch cache is about to become ready", Verbs: []string{"ready"}, Fields: []string{"server", "verb"},
		Actions: append(slices.Clip(moment), Freeze),
		Example: "hold cache/pods verb=ready"},
	{Name: CachePoint + "<resource>", Meaning: "a watch cache is about to process an event", Verbs: []string{"event"}, Fields: []string{"server", "verb", "namespace", "name"},
		Actions: []ActionKind{Hold, Delay, Freeze, Drop, Duplicate, Cancel, Crash},
		Example: "freeze cache/configmaps at=1200"},
	{Name: CachePoint + "<resource>", Meaning: "a watch cache is about to learn how far the store has got, without an event", Verbs: []string{"progress"}, Fields: []string{"server", "verb"},
		Actions: []ActionKind{Hold, Delay, Freeze, Drop, Cancel, Crash},
		Example: "drop cache/configmaps verb=progress"},

	{Name: WebhookPoint + "<webhook>", Meaning: "an admission webhook is about to be called", Verbs: []string{"create", "update", "delete", "connect"},
		Fields: reviewed, Actions: foreign, Failures: away,
		Example: "fail webhook/policy.example.com verb=create with=refused"},
	{Name: APIServicePoint + "<apiservice>", Meaning: "a request is about to be passed on to an aggregated server", Verbs: httpVerbs,
		Fields: append(slices.Clip(object), "verb"), Actions: foreign, Failures: away,
		Example: "fail apiservice/v1beta1.metrics.k8s.io with=503"},
	{Name: EgressPoint + "<network>", Meaning: "the server is about to dial", Names: []string{"cluster", "controlplane", "etcd"}, Fields: []string{"server", "key"},
		Actions: []ActionKind{Hold, Delay, Fail, Drop, Cancel, Crash}, Failures: []Failure{Refused, Unreachable, Timeout},
		Example: "fail egress/etcd after=5s for=30s with=unreachable"},
	{Name: AuthToken, Meaning: "a service account token has been checked and is about to be accepted", Fields: []string{"server", "caller"}, Actions: []ActionKind{Hold, Delay, Fail, Crash},
		Failures: []Failure{Expired, Unauthorized}, Example: "fail auth/token caller=system:serviceaccount:default:* with=expired"},
	{Name: AuthCertificate, Meaning: "a client certificate has been checked and is about to be accepted", Fields: []string{"server", "caller"}, Actions: []ActionKind{Hold, Delay, Fail, Crash},
		Failures: []Failure{Expired, Unauthorized}, Example: "fail auth/certificate after=1h with=expired"},
}
