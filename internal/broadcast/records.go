package broadcast

import (
	"context"
	"fmt"
)

// AwaitRecords returns all records of somebody as soon as at least so many are done, which is looked
// at at all news. If the context ends first, it returns what there is and the reason, which begins
// with what is missing.
func AwaitRecords[Record any](
	ctx context.Context, news *News, all func() []Record, done func(Record) bool, least int, what string,
) ([]Record, error) {
	count := 0
	err := news.Await(ctx, func() bool {
		count = 0
		for _, record := range all() {
			if done(record) {
				count++
			}
		}
		return count >= least
	})
	if err != nil {
		err = fmt.Errorf("%d of %d %s: %w", count, least, what, err)
	}
	return all(), err
}
