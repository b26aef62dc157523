// Package inject owns the injectors at the edges of a server chain: HTTP requests
// and responses, watch events, admission webhooks, informers, aggregated servers,
// authentication, dialing, lifecycle hooks and signals. Each describes the operations
// that pass it to the rules and carries out what they say. It never decides what an
// action means, which is up to package fault, and knows nothing of the store.
package inject
