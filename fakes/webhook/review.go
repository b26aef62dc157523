package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sjson "k8s.io/apimachinery/pkg/runtime/serializer/json"

	"snowglobe.test/fakes/stub"
)

// HTTP is how a request came.
type HTTP struct {
	Path   string
	Query  url.Values // such as timeout=10s
	Header http.Header
	Client string // the common name of the client's certificate, "" without one
}

// kind is what one webhook is sent.
type kind struct {
	gvk     schema.GroupVersionKind
	decoder runtime.Decoder
	setting string // makes the API server send this version
}

func newKind(gvk schema.GroupVersionKind, add func(*runtime.Scheme) error, setting string) (kind, error) {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return kind{}, fmt.Errorf("types of %s: %w", gvk.GroupVersion(), err)
	}
	options := k8sjson.SerializerOptions{Strict: true}
	return kind{gvk, k8sjson.NewSerializerWithOptions(k8sjson.DefaultMetaFactory, scheme, scheme, options), setting}, nil
}

// typeMeta is that of the answer.
func (k kind) typeMeta() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: k.gvk.GroupVersion().String(), Kind: k.gvk.Kind}
}

// deviation is what is wrong with a request, and the HTTP status to say it with.
type deviation struct {
	error
	code int
}

// read decodes a request. It refuses fields that the type does not have or that come
// twice.
func (k kind) read(r *http.Request, into runtime.Object) error {
	if r.Method != http.MethodPost {
		return deviation{fmt.Errorf("the method is %s, want POST", r.Method), http.StatusMethodNotAllowed}
	}
	const want = "application/json"
	if got := r.Header.Get("Content-Type"); got != want {
		if media, _, err := mime.ParseMediaType(got); err != nil || media != want {
			return deviation{fmt.Errorf("the content type is %q, want %s", got, want), http.StatusUnsupportedMediaType}
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("the body of the request broke off: %w", err)
	}
	var meta metav1.TypeMeta
	if err := json.Unmarshal(body, &meta); err != nil {
		return fmt.Errorf("the body is not a JSON object: %w", err)
	}
	if got := schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind); got != k.gvk {
		return fmt.Errorf("the body is %q %q, want %s %s: configure the API server with %s",
			meta.APIVersion, meta.Kind, k.gvk.GroupVersion(), k.gvk.Kind, k.setting)
	}
	if _, _, err := k.decoder.Decode(body, nil, into); err != nil {
		return fmt.Errorf("the body is no valid %s: %w", k.gvk.Kind, err)
	}
	return nil
}

// origin returns how a request came.
func origin(r *http.Request) HTTP {
	o := HTTP{Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone()}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		o.Client = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	return o
}

// respond answers one request: with what the table says, or with what is wrong with it.
func respond[Request, Answer any](w http.ResponseWriter, r *http.Request, table *stub.Table[Request, Answer],
	request Request, wrong error, body func(Answer) any) {
	if wrong != nil {
		code := http.StatusBadRequest
		if d := (deviation{}); errors.As(wrong, &d) {
			code = d.code
		}
		table.Reject(request, wrong)
		http.Error(w, wrong.Error(), code)
		return
	}
	answer, err := table.Serve(r.Context(), request)
	if err != nil {
		stub.WriteError(w, err)
		return
	}
	encoded, err := json.Marshal(body(answer))
	if err != nil {
		http.Error(w, fmt.Sprintf("encode the answer of a rule: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encoded) // the client may be gone
}
