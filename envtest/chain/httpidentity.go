package chain

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// requestKey is the path of a request with the selectors of its query: two
// informers of one caller are told apart by what they select. The rest of a
// query differs from run to run, or says nothing of what is asked for.
func requestKey(req *http.Request, info *request.RequestInfo) string {
	query, kept := req.URL.Query(), url.Values{}
	for _, name := range []string{"fieldSelector", "labelSelector"} {
		if value := query.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	if len(kept) == 0 {
		return info.Path
	}
	return info.Path + "?" + kept.Encode()
}

// namedBodyBytes bounds how much of a body is read for the name in it.
const namedBodyBytes = 4 << 20

// createdName reads the name that the body of a create gives its object, and
// leaves the body as it was. It is empty if the server is to make the name, or
// if there is nothing to read it from.
func createdName(req *http.Request) string {
	if req.Body == nil {
		return ""
	}
	body, _ := io.ReadAll(io.LimitReader(req.Body, namedBodyBytes)) // whoever reads on finds the error again
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), req.Body), req.Body}
	mediaType, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	var object metav1.PartialObjectMetadata
	if mediaType == runtime.ContentTypeProtobuf {
		if raw, ok := bytes.CutPrefix(body, protobufMagic); ok {
			var unknown runtime.Unknown
			if unknown.Unmarshal(raw) == nil {
				_ = object.Unmarshal(unknown.Raw) // the metadata is the first field of every object
			}
		}
	} else {
		_ = json.Unmarshal(body, &object) // what can't be read has no name, and is for the server to refuse
	}
	return object.Name
}
