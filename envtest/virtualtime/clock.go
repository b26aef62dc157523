package virtualtime

import (
	"errors"
	"fmt"
	"time"
)

// Epoch is when the clock of a bubble begins, here as everywhere in testing/synctest.
var Epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// latest leaves years before 2262, when the nanoseconds since 1970 no longer fit into 64 bits.
var latest = Epoch.AddDate(250, 0, 0)

// CheckClock says what is wrong with a time at which a bubble is to begin: it can't be before the
// Epoch, or centuries after it.
func CheckClock(begin time.Time) error {
	if begin.Before(Epoch) || begin.After(latest) {
		return fmt.Errorf("virtual time can begin between %s and %s, and not at %s",
			Epoch.Format(time.RFC3339), latest.Format(time.RFC3339), begin.Format(time.RFC3339))
	}
	return nil
}

// SetClock lets time pass in the bubble of the calling goroutine until it is then. What else is in
// the bubble lives through that time, so it comes first there.
func SetClock(then time.Time) error {
	if err := CheckClock(then); err != nil {
		return err
	}
	if !Virtual() {
		return errors.New("only the clock of virtual time can be set")
	}
	if now := time.Now(); now.After(then) {
		return fmt.Errorf("the virtual clock can't be set to %s: it is %s already", then.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	time.Sleep(time.Until(then))
	return nil
}
