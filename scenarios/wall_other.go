//go:build !unix

package scenarios

import "time"

// wall is a time on the wall; where it is not known, all time is the script's.
func wall() time.Duration { return 0 }
