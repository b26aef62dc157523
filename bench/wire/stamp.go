// Package wire is what the clients of a load find in the bytes of a watch: frames, the stamps in
// them, and objects.
package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// Stamp is what an event carries in an annotation of its object: its number, counted from 0, and
// when it was due to be written. Its text is as long for every event, and stands in JSON,
// protobuf and CBOR as it is, so that a reader finds it without decoding anything.
type Stamp struct {
	Number int
	Due    time.Duration // on the load's clock
}

const (
	StampAnnotation = "bench.snowglobe.test/stamp"

	StampMark    = "snowglobe-stamp:"
	numberDigits = 10
	dueDigits    = 19
	StampBytes   = len(StampMark) + numberDigits + len("+") + dueDigits
)

func (s Stamp) String() string {
	return fmt.Sprintf("%s%0*d+%0*d", StampMark, numberDigits, s.Number, dueDigits, s.Due.Nanoseconds())
}

// FindStamp returns the stamp in an encoded event, if it has one: those of other writers and
// bookmarks have none.
func FindStamp(encoded []byte) (_ Stamp, ok bool, err error) {
	at := bytes.Index(encoded, []byte(StampMark))
	if at < 0 {
		return Stamp{}, false, nil
	}
	text := encoded[at:min(len(encoded), at+StampBytes)]
	number, due, _ := bytes.Cut(text[len(StampMark):], []byte("+")) // without it, neither is a number
	count, countErr := strconv.Atoi(string(number))
	nanoseconds, dueErr := strconv.ParseInt(string(due), 10, 64)
	if len(text) < StampBytes || countErr != nil || dueErr != nil {
		return Stamp{}, false, fmt.Errorf("the stamp %q is not whole", text)
	}
	return Stamp{count, time.Duration(nanoseconds)}, true, nil
}
