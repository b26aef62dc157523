// Package clients owns the commands with which a script acts as a client of API servers. They
// choose the user, the network path and the media type of its requests, send requests of all
// kinds, and run watches and informers. It never judges an answer; that is for the commands of
// checks.
package clients

import (
	"context"
	"net/http"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/scenarios/commands/servers"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/story"
)

// Clients are what a script asks API servers with.
type Clients struct {
	run     *engine.Run
	servers *servers.Servers

	user      []string                   // who makes the script's requests: the arguments of "as"
	via       *envtest.Client            // the path of the requests; nil for client-0
	paths     map[string]*envtest.Client // the others, by what "via" calls them
	identity  *rest.Config               // the configuration for user and via; nil without a server
	mediaType string                     // what clients accept; empty for JSON
	builtin   []Resource                 // those of Kubernetes itself, once the servers were asked
	streams   map[string]*Stream         // by name
}

// New returns the clients of some servers.
func New(run *engine.Run, of *servers.Servers) *Clients {
	c := &Clients{run: run, servers: of, streams: map[string]*Stream{}}
	of.OnStart(c.begin)
	of.OnStop(func(context.Context) error {
		c.identity = nil
		return nil
	})
	return c
}

// begin makes a cluster admin the user, on the first path.
func (c *Clients) begin(*envtest.ControlPlane) error {
	c.user, c.via, c.paths, c.mediaType, c.builtin = []string{"admin"}, nil, map[string]*envtest.Client{}, "", nil
	c.identify()
	return nil
}

// lookupAgent is the user agent of requests that a command needs to do its work.
const lookupAgent = "script-lookup"

// Config returns the client configuration of the script's current user, for requests under
// a user agent.
func (c *Clients) Config(agent string) (*rest.Config, error) {
	config, err := c.onceConfig(agent)
	if err == nil && agent == story.ScriptAgent {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noRetry{next} })
	}
	return config, err
}

// onceConfig is Config for callers that send their requests without client-go's REST client,
// and so need no guard against its retries.
func (c *Clients) onceConfig(agent string) (*rest.Config, error) {
	if c.identity == nil {
		return nil, servers.ErrNone
	}
	config := rest.CopyConfig(c.identity)
	config.UserAgent, config.WarningHandler = agent, rest.NoWarnings{}
	if other := c.run.Script.Answer(); other != nil {
		config.Wrap(other.Transport)
	}
	if agent != lookupAgent {
		c.translate(config)
	}
	return config, nil
}

// Typed returns a typed client with the configuration of Config.
func (c *Clients) Typed(agent string) (kubernetes.Interface, error) {
	config, err := c.Config(agent)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// Dynamic returns a dynamic client with the configuration of Config.
func (c *Clients) Dynamic(agent string) (dynamic.Interface, error) {
	config, err := c.Config(agent)
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// noRetry keeps clients from retrying: a script asks once and looks at the
// answer. Clients retry only if the answer has a Retry-After header.
type noRetry struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (n noRetry) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(req)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}
