package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// stamp is what an event carries in an annotation of its object: its number, counted from 0, and
// when it was due to be written. Its text is as long for every event, and stands in JSON,
// protobuf and CBOR as it is, so that a reader finds it without decoding anything.
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
func findStamp(encoded []byte) (_ stamp, ok bool, err error) {
	at := bytes.Index(encoded, []byte(stampMark))
	if at < 0 {
		return stamp{}, false, nil
	}
	text := encoded[at:min(len(encoded), at+stampBytes)]
	number, due, _ := bytes.Cut(text[len(stampMark):], []byte("+")) // without it, neither is a number
	count, countErr := strconv.Atoi(string(number))
	nanoseconds, dueErr := strconv.ParseInt(string(due), 10, 64)
	if len(text) < stampBytes || countErr != nil || dueErr != nil {
		return stamp{}, false, fmt.Errorf("the stamp %q is not whole", text)
	}
	return stamp{count, time.Duration(nanoseconds)}, true, nil
}
