package load

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"

	"snowglobe.test/bench/measure"
)

// Shape is what a load consists of. A report tells it as the load was run.
type Shape struct {
	// Encoding is "json", "protobuf" or "cbor"; empty means json.
	Encoding string `json:"encoding"`
	// Decode has each watcher decode its events, as client-go does. Otherwise it reads them as
	// bytes, so that what is measured is the server and not its clients.
	Decode bool `json:"decode"`
	// Store is StoreMemory or StoreEmbedded; empty means StoreMemory. That of a cluster is not known.
	Store string `json:"store,omitempty"`
	// Resource is what is written and watched: "configmaps", "pods", "leases" or "widgets", a
	// custom resource, or "converted-widgets", one that a webhook converts from the version that is
	// stored. Empty means configmaps.
	Resource string `json:"resource"`

	// Servers is how many API servers on one store the clients are spread over; zero means 1.
	Servers int `json:"servers"`
	// Watchers is how many clients watch; zero means 100.
	Watchers int `json:"watchers"`
	// StreamsPerConnection is how many watches share a connection; zero means 1.
	StreamsPerConnection int `json:"streamsPerConnection"`
	// Writers is how many clients write, each to its own object; zero means 4, or as many as
	// Namespaces and Selectors need. Each waits for its answers, so few may not reach Pace.Rate.
	Writers int `json:"writers"`
	// Namespaces is over how many namespaces objects and watchers are spread; zero means 1.
	Namespaces int `json:"namespaces"`
	// Selectors is over how many values of a label the objects of a namespace are spread. Each
	// watcher selects one, so that it gets one of so many events. Zero means 1: no selector.
	Selectors int `json:"selectors"`
	// PayloadBytes is the size of the data in each object. Zero means 256.
	PayloadBytes int `json:"payloadBytes"`

	// Initial is how each watcher gets the objects that are there: InitialNone, InitialList or
	// InitialStream. Empty means InitialNone: it watches what comes after them.
	Initial string `json:"initial"`
	// Objects is how many objects there are beside those of the writers, of the same size.
	Objects int `json:"objects"`
	// Compress has watchers ask for what is compressed.
	Compress bool `json:"compressed"`
}

// encodings are those that a load can have its watches in: what a request accepts, and the media
// type of its answer.
var encodings = map[string]struct{ accepted, stream string }{
	"json":       {jsonType, jsonType},
	"protobuf":   {runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf},
	EncodingCBOR: {runtime.ContentTypeCBOR, runtime.ContentTypeCBORSequence},
}

const (
	EncodingCBOR = "cbor"
	jsonType     = runtime.ContentTypeJSON
)

// StreamType is the media type of a watch in an encoding.
func StreamType(encoding string) string { return encodings[encoding].stream }

// number is an option of a shape that is a whole number. A sweep can vary it.
type number struct {
	of       func(*Shape) *int
	words    string // with a number of them
	standard int    // what zero means
	most     int
	usage    string
}

const (
	MaxWatchers = 100_000
	maxPayload  = 1 << 20   // the size limit of a ConfigMap
	maxObjects  = 1_000_000 // as many as a store in memory holds with ease
)

// numbers are those of a shape, by their flags.
var numbers = map[string]number{
	"watchers": {func(s *Shape) *int { return &s.Watchers }, "%d watchers", 100, MaxWatchers,
		"how many clients watch (default 100)"},
	"writers": {func(s *Shape) *int { return &s.Writers }, "%d writers", 4, math.MaxInt,
		"how many clients write, each to its own object (default 4, or as many as namespaces and selectors need)"},
	"payload": {func(s *Shape) *int { return &s.PayloadBytes }, "a payload of %d bytes", 256, maxPayload,
		"`bytes` of data in each object (default 256)"},
	"objects": {func(s *Shape) *int { return &s.Objects }, "%d objects", 0, maxObjects,
		"how many objects there are beside those that are written (default 0)"},
	"servers": {func(s *Shape) *int { return &s.Servers }, "%d servers", 1, 9,
		"over how many API servers on one store the clients are spread (default 1)"},
	"streams": {func(s *Shape) *int { return &s.StreamsPerConnection }, "%d streams on a connection", 1, math.MaxInt,
		"how many watches share a connection (default 1)"},
	"namespaces": {func(s *Shape) *int { return &s.Namespaces }, "%d namespaces", 1, math.MaxInt,
		"over how many namespaces objects and watchers are spread (default 1)"},
	"selectors": {func(s *Shape) *int { return &s.Selectors }, "%d selectors", 1, math.MaxInt,
		"over how many labels those of a namespace are spread; each watcher selects one (default 1: no selector)"},
}

// Sweepable are the flags of the numbers, in order.
func Sweepable() []string { return slices.Sorted(maps.Keys(numbers)) }

// Set sets the number of a flag, which is one of Sweepable.
func (s *Shape) Set(flag string, to int) { *numbers[flag].of(s) = to }

// AddFlags adds the flags of a shape, but for its encoding, of which a sweep can have several.
func (s *Shape) AddFlags(flags *pflag.FlagSet) {
	for flag, n := range numbers {
		flags.IntVar(n.of(s), flag, 0, n.usage)
	}
	flags.BoolVar(&s.Decode, "decode", false, "have each watcher decode its events, as client-go does")
	flags.StringVar(&s.Store, "store", "", measure.StoreUsage)
	flags.StringVar(&s.Resource, "resource", "", "what is written and watched: configmaps, pods, leases, or widgets, "+
		"which are custom resources, or converted-widgets, which a webhook converts from the version that is stored "+
		"(default configmaps)")
	flags.StringVar(&s.Initial, "initial", "", "how each watcher gets the objects that are there: none, list, or "+
		"stream, "+
		"which is a streaming list (default none)")
	flags.BoolVar(&s.Compress, "compress", false, "have watchers ask for compressed lists and streaming lists")
}

func (s Shape) withDefaults() Shape {
	ofWriters := s.Writers
	for _, n := range numbers {
		*n.of(&s) = cmp.Or(*n.of(&s), n.standard)
	}
	if ofWriters == 0 {
		s.Writers = max(s.Writers, s.Groups())
	}
	s.Encoding = cmp.Or(s.Encoding, "json")
	s.Resource = cmp.Or(s.Resource, "configmaps")
	s.Initial = cmp.Or(s.Initial, InitialNone)
	return s
}

// Groups is over how many namespaces and selectors in them objects are spread.
func (s Shape) Groups() int { return s.Namespaces * s.Selectors }

// GetsObjects reports whether watchers get the objects that are there.
func (s Shape) GetsObjects() bool { return s.Initial == InitialList || s.Initial == InitialStream }

// Spread calls each with what clients and objects are spread over, where that is several.
func (s Shape) Spread(each func(flag, words string, several int)) {
	for _, flag := range []string{"servers", "streams", "namespaces", "selectors"} {
		if n := numbers[flag]; *n.of(&s) > 1 {
			each(flag, n.words, *n.of(&s))
		}
	}
}

func (s Shape) validate() error {
	for _, flag := range Sweepable() {
		n := numbers[flag]
		switch value := *n.of(&s); {
		case value >= min(1, n.standard) && value <= n.most:
		case n.most == math.MaxInt:
			return fmt.Errorf(n.words+": give at least 1", value)
		default:
			return fmt.Errorf(n.words+": give a number from 1 to %d", value, n.most)
		}
	}
	kind, err := KindOf(s.Resource)
	switch {
	case err != nil:
		return err
	case s.Writers < s.Groups():
		return fmt.Errorf("%d writers are too few for %d namespaces with %d selectors each: give at least %d",
			s.Writers, s.Namespaces, s.Selectors, s.Groups())
	case encodings[s.Encoding].accepted == "":
		return fmt.Errorf("encoding %q is unknown; use json, protobuf or cbor", s.Encoding)
	case s.Encoding == EncodingCBOR && s.Decode:
		return errors.New("client-go decodes no CBOR by default: decode json or protobuf, " +
			"or read cbor without decoding")
	case s.Encoding == "protobuf" && !kind.protobuf:
		return fmt.Errorf("there is no protobuf of %s: use json or cbor", s.Resource)
	case s.Initial != InitialNone && !s.GetsObjects():
		return fmt.Errorf("initial objects %q: use %s, %s or %s", s.Initial, InitialNone, InitialList, InitialStream)
	case s.Compress && !s.GetsObjects():
		return errors.New("an API server compresses lists and streaming lists alone: add initial objects by either")
	case s.Compress && s.Decode:
		return errors.New("what is compressed is read as bytes: leave out either compression or decoding")
	}
	return nil
}
