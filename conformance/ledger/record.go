package ledger

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"
)

// Wrap has the page record what goes through a transport.
func (p *Page) Wrap(transport http.RoundTripper) http.RoundTripper {
	return &recorder{page: p, next: transport}
}

type recorder struct {
	page *Page
	next http.RoundTripper
}

// WrappedRoundTripper lets connections be closed.
func (r *recorder) WrappedRoundTripper() http.RoundTripper { return r.next }

var _ utilnet.RoundTripperWrapper = (*recorder)(nil)

var requests = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	info := r.page.of.info(req)
	if info == nil {
		return r.next.RoundTrip(req)
	}
	ctx, release := req.Context(), func() {}
	if r.page.of.lasting != nil {
		ctx, release = outliving(ctx)
	}
	defer release()
	resp, err := r.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	r.page.record(info, req.URL.Path, resp.StatusCode, sent(req), answer)
	return resp, nil
}

// sent returns the body of a request, unless it comes bit by bit and can be read once only.
func sent(req *http.Request) []byte {
	if req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(body) // in memory
	return text
}

// grace is how long a write may go on after its caller has lost interest.
const grace = 10 * time.Second

// outliving returns a context that ends a while after another: what the server makes of a write
// is known only by its answer, and an interrupted run has to know it.
func outliving(ctx context.Context) (longer context.Context, release func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() { stop(); cancel() }
}

// streams are the subresources whose answers may have no end, and which keep nothing.
var streams = sets.New("attach", "exec", "portforward", "proxy")

// info describes a request that writes, nil if it does not.
func (l *Ledger) info(req *http.Request) *request.RequestInfo {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return nil // RequestInfo would log a selector that it cannot read
	}
	relative := *req
	u := *req.URL
	u.Path = strings.TrimPrefix(u.Path, l.base)
	relative.URL = &u
	info, err := requests.NewRequestInfo(&relative)
	if err != nil || !info.IsResourceRequest || streams.Has(info.Subresource) || u.Query().Has("dryRun") {
		return nil
	}
	switch info.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return info
	}
	return nil
}

// record records a request that was answered.
func (p *Page) record(info *request.RequestInfo, path string, code int, sent, answer []byte) {
	object := Object{GroupResource: schema.GroupResource{Group: info.APIGroup, Resource: info.Resource},
		Namespace: info.Namespace, Name: info.Name, path: path}
	if object.GroupResource == namespaces {
		object.Namespace = "" // RequestInfo has a namespace be in itself
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case info.Verb == "create" && info.Subresource == "":
		// A review, which is not kept, has no name.
		if object.Name = named(answer, sent); object.Name != "" && code == http.StatusCreated {
			object.path += "/" + object.Name
			p.made = append(p.made, object)
		}
	case code == http.StatusCreated && info.Subresource == "": // by apply, or by an update that creates
		p.made = append(p.made, object)
	default:
		p.ask(object, info.Verb == "delete" && info.Subresource == "" && code == http.StatusOK &&
			kindOf(answer) == "Status")
	}
}

// ask records a change that was asked for, and may have removed the object. Called with mu held.
func (p *Page) ask(object Object, gone bool) {
	if !p.has(object) && !p.has(Object{GroupResource: namespaces, Name: object.Namespace}) {
		p.asked = append(p.asked, object)
	}
	for i := range p.made {
		if gone && p.made[i].is(object) {
			p.made[i].gone = true
		}
	}
}

// named returns the name of the first object that has one.
func named(objects ...[]byte) string {
	for _, text := range objects {
		var object metav1.PartialObjectMetadata
		if yaml.Unmarshal(text, &object) == nil && object.Name != "" {
			return object.Name
		}
	}
	return ""
}

func kindOf(text []byte) string {
	var kind metav1.TypeMeta
	_ = yaml.Unmarshal(text, &kind) // what is none has no kind
	return kind.Kind
}
