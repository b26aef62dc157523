// Package egress is how a server reaches what is outside of it: its store, and the webhooks,
// aggregated servers, nodes and issuers of its networks, past the proxies of the environment
// and through those of an egress selector.
package egress
