// Package ledger keeps what a case makes on a cluster that other cases use too, and removes it. It
// goes by requests and their answers alone, so that it holds whatever the case does, and wherever it
// ends. It never removes what it has not seen made, and knows nothing of cases.
//
// A cluster that ends with the run gets its objects deleted, so that they are not in the way of other
// cases. On one that outlives the run nothing may be left: namespaces are emptied there, finalizers
// of namespaces removed, a write goes on when its caller is interrupted, and Close waits until all is
// gone.
package ledger

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Ledger is of one cluster. Each case has a page of it.
type Ledger struct {
	host    string
	base    string // the path of the server, which no request is without
	client  rest.Interface
	lasting *lasting // nil if the cluster ends with the run

	mu      sync.Mutex
	pages   []*Page
	leaving []Object // deleted, and not gone yet
}

// lasting is what must be known of a cluster to leave nothing there.
type lasting struct {
	metadata   metadata.Interface
	namespaced []schema.GroupVersionResource // what there can be in a namespace
}

// New begins a ledger of a cluster that ends with the run. The configuration is for a user with all
// permissions.
func New(config *rest.Config) (*Ledger, error) {
	ledger, _, err := begin(config)
	return ledger, err
}

// Lasting begins a ledger of a cluster that outlives the run, and asks that for its resources.
func Lasting(config *rest.Config) (*Ledger, error) {
	ledger, client, err := begin(config)
	if err != nil {
		return nil, err
	}
	ledger.lasting = &lasting{}
	if ledger.lasting.metadata, err = metadata.NewForConfig(unlimited(config)); err != nil {
		return nil, err
	}
	// An aggregated server that is unavailable hides what cases make nothing of.
	lists, err := discovery.ServerPreferredNamespacedResources(client)
	if lists == nil && err != nil {
		return nil, fmt.Errorf("ask %s for its resources: %w", ledger.host, err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if verbs := sets.New(resource.Verbs...); verbs.HasAll("list", "deletecollection") {
				ledger.lasting.namespaced = append(ledger.lasting.namespaced, version.WithResource(resource.Name))
			}
		}
	}
	return ledger, nil
}

func begin(config *rest.Config) (*Ledger, *discovery.DiscoveryClient, error) {
	client, err := discovery.NewDiscoveryClientForConfig(unlimited(config))
	if err != nil {
		return nil, nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, err
	}
	return &Ledger{host: config.Host, base: strings.TrimRight(base.Path, "/"), client: client.RESTClient()}, client, nil
}

// unlimited is a configuration without a client-side rate limit, whose warnings nobody reads.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// Page returns a new page of a name.
func (l *Ledger) Page(name string) *Page {
	page := &Page{Name: name, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages = append(l.pages, page)
	return page
}

// Pages returns all pages.
func (l *Ledger) Pages() []*Page {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.pages)
}

// Page has what one case has made.
type Page struct {
	Name string
	of   *Ledger

	mu    sync.Mutex
	made  []Object
	asked []Object // to be changed
}

// Made returns what was made, in order.
func (p *Page) Made() []Object {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.made)
}

// Asked returns what was to be changed or deleted, granted or not, that is not on the page, nor its
// namespace.
func (p *Page) Asked() []Object {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// Has reports whether a namespace is on the page.
func (p *Page) Has(namespace string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.has(Object{GroupResource: namespaces, Name: namespace})
}

// has is called with mu held.
func (p *Page) has(object Object) bool { return slices.ContainsFunc(p.made, object.is) }

// An Object is something made, or changed.
type Object struct {
	schema.GroupResource
	Namespace string // empty if it is in none
	Name      string
	path      string
	gone      bool
}

var namespaces = schema.GroupResource{Resource: "namespaces"}

func (o Object) is(other Object) bool {
	return o.GroupResource == other.GroupResource && o.Namespace == other.Namespace && o.Name == other.Name
}

// String names the object for people.
func (o Object) String() string {
	text := o.GroupResource.String() + " " + o.Name
	if o.Namespace != "" {
		text += " in " + o.Namespace
	}
	return text
}
