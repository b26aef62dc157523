package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"snowglobe.test/internal/observe"
	"snowglobe.test/internal/watchframe"
	"snowglobe.test/scenarios/engine"
)

// mediaTypes are those that a script can ask for, by their names in scripts.
var mediaTypes = map[string]string{
	"json":     runtime.ContentTypeJSON,
	"protobuf": runtime.ContentTypeProtobuf,
	"cbor":     runtime.ContentTypeCBOR,
}

func (c *Clients) Accept() engine.Command {
	return engine.Command{
		Name:    "accept",
		Args:    "json | protobuf | cbor",
		Summary: "choose the media type of the answers to the requests that follow",
		Details: `The client accepts nothing else, for lists and watches too: custom resources have no
protobuf, and CBOR has to be enabled in the server. Requests are sent as JSON, or as YAML
for apply. After a start it is json.`,
		Example: "accept protobuf\nlist configmaps",
		Needs:   c.servers.Running,
		Static: func(_ *pflag.FlagSet, args []string) error {
			return engine.CheckName("no media type is called", args[0], slices.Sorted(maps.Keys(mediaTypes)))
		},
		NoNegation: true,
		Run: func(_ context.Context, args []string) error {
			c.mediaType = mediaTypes[args[0]]
			return nil
		},
	}
}

// translate makes a client accept what the script has chosen.
func (c *Clients) translate(config *rest.Config) {
	if mediaType := c.mediaType; mediaType != "" && mediaType != runtime.ContentTypeJSON {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return translated{next, mediaType} })
	}
}

// translated lets a client that speaks JSON accept another media type, and nothing else.
type translated struct {
	next      http.RoundTripper
	mediaType string
}

// RoundTrip implements http.RoundTripper.
func (t translated) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Accept", t.mediaType)
	response, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	contentType := response.Header.Get("Content-Type")
	media, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || media == runtime.ContentTypeJSON {
		return response, nil // the answer has no media type of Kubernetes, or is as expected
	}
	if parameters["stream"] != "" || media == runtime.ContentTypeCBORSequence {
		if splitter := watchframe.NewSplitter(contentType); splitter != nil {
			response.Body = &translatedWatch{ReadCloser: response.Body, splitter: splitter}
			response.Header.Set("Content-Type", runtime.ContentTypeJSON)
		}
		return response, nil
	}
	return response, translateBody(response, media)
}

// translateBody makes the body of an answer JSON, if it is an object of Kubernetes.
func translateBody(response *http.Response, media string) error {
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if object, whole := observe.Decode(media, body); whole {
		if body, err = json.Marshal(object); err != nil {
			return err
		}
		response.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// translatedWatch is the stream of a watch, with its events as JSON.
type translatedWatch struct {
	io.ReadCloser
	splitter *watchframe.Splitter
	events   bytes.Buffer
}

// Read implements io.Reader.
func (w *translatedWatch) Read(p []byte) (int, error) {
	piece := make([]byte, max(len(p), bytes.MinRead))
	for w.events.Len() == 0 {
		n, err := w.ReadCloser.Read(piece)
		if addErr := w.splitter.Add(piece[:n], w.translate); addErr != nil {
			return 0, addErr
		}
		if err != nil && w.events.Len() == 0 {
			return 0, err
		}
	}
	return w.events.Read(p)
}

// translate adds the event of a frame.
func (w *translatedWatch) translate(frame watchframe.Frame) error {
	event, err := frame.Event()
	if err != nil {
		return err
	}
	object, whole := observe.Decode(w.splitter.MediaType(), event.Object.Raw)
	if !whole {
		return fmt.Errorf("an object in %s can't be decoded", w.splitter.MediaType())
	}
	return json.NewEncoder(&w.events).Encode(map[string]any{"type": event.Type, "object": object})
}
