package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// stamp is what an event carries in an annotation of its object: its number, counted from 0,
// and when it was due to be written. Its text is as long for every event, and stands in JSON, protobuf
// and CBOR as it is, so that a reader finds it without decoding anything.
type stamp struct {
	number int
	due    time.Duration // on the load's clock
}

const (
	stampAnnotation = "bench.snowglobe.test/stamp"

	stampMark    = "snowglobe-stamp:"
	numberDigits = 10
	dueDigits    = 19
	stampBytes   = len(stampMark) + numberDigits + len("+") + dueDigits
)

func (s stamp) String() string {
	return fmt.Sprintf("%s%0*d+%0*d", stampMark, numberDigits, s.number, dueDigits, s.due.Nanoseconds())
}

// findStamp returns the stamp in an encoded event, if it has one: those of other writers and
// bookmarks have none.
func findStamp(encoded []byte) (found stamp, ok bool, err error) {
	at := bytes.Index(encoded, []byte(stampMark))
	if at < 0 {
		return stamp{}, false, nil
	}
	text := encoded[at:]
	text = text[:min(len(text), stampBytes)]
	number, due, _ := bytes.Cut(text[len(stampMark):], []byte("+"))
	if found.number, err = strconv.Atoi(string(number)); err == nil && len(text) == stampBytes {
		var nanoseconds int64
		nanoseconds, err = strconv.ParseInt(string(due), 10, 64)
		found.due = time.Duration(nanoseconds)
	} else if err == nil {
		err = strconv.ErrSyntax
	}
	if err != nil {
		return stamp{}, false, fmt.Errorf("the stamp %q: %w", text, err)
	}
	return found, true, nil
}
