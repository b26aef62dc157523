package script

import (
	"fmt"
	"time"
)

// ClockCommand is the name of the command that sets the clock of a script.
const ClockCommand = "clock"

// ParseClock reads the argument of ClockCommand.
func ParseClock(text string) (time.Time, error) {
	begin, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return begin, fmt.Errorf("a time is written like 2026-11-27T09:00:00Z, not %q", text)
	}
	return begin, nil
}

// Clock returns the time at which the script begins in virtual time, and whether it sets one.
func (s Script) Clock() (time.Time, bool) {
	words := s.setting(ClockCommand)
	if words == nil {
		return time.Time{}, false
	}
	begin, err := ParseClock(words[0])
	return begin, err == nil
}
