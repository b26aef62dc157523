package release

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"snowglobe.test/conformance/suite"
)

var openAPICases = suite.Launching([]suite.Case{
	{ID: "S12/OpenAPI-is-that-of-the-release", Test: openAPIIsThatOfTheRelease,
		Source: "k8s.io/kubernetes/api/openapi-spec/v3/apis__apps__v1_openapi.json; " +
			"k8s.io/apiserver/pkg/endpoints/installer.go; k8s.io/apiserver/pkg/endpoints/openapi/openapi.go",
		Promise: "The OpenAPI v3 document of each group version has the paths, operations, parameters and schemas " +
			"that the release has published."},
})

//go:embed kept/openapi.txt
var keptOpenAPI string

// Digest is that of an OpenAPI document, without what follows gates and not the release: its prose,
// the values of enumerations, and the media type CBOR.
func Digest(document []byte) (string, error) {
	var content map[string]any
	if err := json.Unmarshal(document, &content); err != nil {
		return "", err
	}
	delete(content, "info") // names the build
	reduce(content)
	canonical, err := json.Marshal(content)
	sum := sha256.Sum256(canonical)
	return fmt.Sprintf("%x", sum[:8]), err
}

// reduce removes what Digest leaves out, but no properties that have such names.
func reduce(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			_, isText := inner.(string)
			_, isList := inner.([]any)
			if key == "description" && isText || key == "enum" && isList || strings.HasSuffix(key, "cbor") ||
				strings.HasPrefix(key, "application/cbor") {
				delete(value, key)
			} else {
				reduce(inner)
			}
		}
	case []any:
		for _, inner := range value {
			reduce(inner)
		}
	}
}

func openAPIIsThatOfTheRelease(ctx context.Context, beside *suite.T) {
	t := everything(ctx, beside)
	var kept, found []string
	for _, line := range withoutGated(lines(keptOpenAPI)) {
		path, _, _ := strings.Cut(line, " ")
		t.Served(ctx, "/openapi/v3/"+path)
		digest, err := Digest(t.Answered(ctx, "/openapi/v3/"+path, http.StatusOK).Body)
		t.Must(err, "read the OpenAPI document of %s", path)
		kept, found = append(kept, line), append(found, path+" "+digest)
	}
	expectSame(t, kept, found, "digests of documents")
}
