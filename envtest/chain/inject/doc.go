// Package inject owns the injectors at the edges of a server chain: HTTP requests
// and their responses, the events of watches, admission webhooks, informers,
// aggregated servers, authentication, dialing, lifecycle hooks and signals. Each
// sits where operations pass, describes them to the rules, and lets them go the way
// the rules say. What an action means is decided by package fault alone.
package inject
