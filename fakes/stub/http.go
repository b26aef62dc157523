package stub

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
)

// ErrBreak breaks the connection off instead of an answer.
var ErrBreak = errors.New("the connection is broken off, as a rule wants it")

// Status is an error that is answered as it stands, whatever the fake speaks.
type Status struct {
	Code   int // such as 503; from 200 to 999
	Header http.Header
	Body   []byte
}

// Error implements error.
func (s Status) Error() string { return fmt.Sprintf("HTTP %d %s", s.Code, http.StatusText(s.Code)) }

// WriteError answers a request with the error of its table: Status as it stands,
// ErrBreak by breaking the connection off, any other as 500 with its text.
func WriteError(w http.ResponseWriter, err error) {
	var status Status
	switch {
	case errors.Is(err, ErrBreak):
		panic(http.ErrAbortHandler)
	case errors.As(err, &status) && (status.Code < 200 || status.Code > 999):
		http.Error(w, fmt.Sprintf("a rule answers with stub.Status and code %d: set it to 200 or more", status.Code), http.StatusInternalServerError)
	case errors.As(err, &status):
		maps.Copy(w.Header(), status.Header)
		w.WriteHeader(status.Code)
		_, _ = w.Write(status.Body) // the client may be gone
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
