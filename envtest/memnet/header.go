package memnet

import (
	"net/http"
	"strings"
)

// wireHeader copies a header as it would arrive over HTTP/2: with canonical names,
// without the fields HTTP/2 has no room for and without values that cannot be sent.
func wireHeader(h http.Header) http.Header {
	n := 0
	for _, vv := range h {
		n += len(vv)
	}
	values := make([]string, 0, n)     // one allocation behind all fields
	out := make(http.Header, len(h)+2) // room for Date and Content-Length
	for name, vv := range h {
		name = http.CanonicalHeaderKey(name)
		if name == "Connection" || name == "Transfer-Encoding" || strings.HasPrefix(name, http.TrailerPrefix) {
			continue
		}
		first := len(values)
		for _, v := range vv {
			if validValue(v) {
				values = append(values, v)
			}
		}
		if len(values) == first {
			continue
		}
		mine := values[first:len(values):len(values)]
		if had := out[name]; had != nil { // the same name in two spellings
			mine = append(had, mine...)
		}
		out[name] = mine
	}
	return out
}

// validValue reports whether v can be sent: no control characters but the tab.
func validValue(v string) bool {
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// trailerNames returns the permitted names in Trailer values, in canonical form.
func trailerNames(values []string) []string {
	var names []string
	for _, v := range values {
		for name := range strings.SplitSeq(v, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			switch name {
			case "", "Transfer-Encoding", "Content-Length", "Trailer":
				continue
			}
			names = append(names, name)
		}
	}
	return names
}
