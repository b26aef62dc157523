package load

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/pflag"
)

// Pace is how fast a load is written and read, and for how long.
type Pace struct {
	// Rate is how many events a second are written. Zero means 100.
	Rate float64
	// Duration is how long events are written; zero means 10 s.
	Duration time.Duration
	// WarmUp is how long events are written before those that are measured. Zero means a tenth of
	// Duration, and a negative one none.
	WarmUp time.Duration
	// Drain is how long the last event may take to all watchers; zero means 30 s.
	Drain time.Duration
	// Slow is the share of watchers that take a tenth of a second over each event, from 0 to 1.
	Slow float64
	// Stalled is the share of watchers that read nothing until the others have all events.
	Stalled float64
}

// NoWarmUp is a WarmUp of none.
const NoWarmUp = -1

// AddFlags adds the flags of a pace.
func (p *Pace) AddFlags(flags *pflag.FlagSet) {
	flags.Float64Var(&p.Rate, "rate", 0, "events per second (default 100)")
	flags.DurationVar(&p.Duration, "duration", 0, "how long to write (default 10s)")
	flags.DurationVar(&p.WarmUp, "warm-up", 0,
		"how long to write before that, without measuring; 0s for not at all (default a tenth of the duration)")
	flags.Float64Var(&p.Slow, "slow", 0, "the `share` of watchers that take 100ms over each event, like 0.1")
	flags.Float64Var(&p.Stalled, "stalled", 0,
		"the `share` of watchers that read nothing until all others have all events, like 0.1")
}

func (p Pace) withDefaults() Pace {
	p.Rate = cmp.Or(p.Rate, 100)
	p.Duration = cmp.Or(p.Duration, 10*time.Second)
	p.WarmUp = cmp.Or(p.WarmUp, p.Duration/10)
	p.Drain = cmp.Or(p.Drain, 30*time.Second)
	return p
}

// Events is how many events the writers write.
func (p Pace) Events() int { return int(p.Rate*p.Duration.Seconds() + 0.5) }

// laggards returns how many of the watchers are slow, and how many are stalled.
func (p Pace) laggards(watchers int) (slow, stalled int) {
	of := func(share float64) int { return int(math.Round(share * float64(watchers))) }
	return of(p.Slow), of(p.Stalled)
}

// Options describe a load; zero is a small one.
type Options struct {
	Shape
	Pace
	// Progress gets a line when a load begins and when it ends; it may be nil.
	Progress io.Writer `json:"-"`
}

// WithDefaults returns the options with the defaults in place of zeros.
func (o Options) WithDefaults() Options {
	return Options{o.Shape.withDefaults(), o.Pace.withDefaults(), cmp.Or(o.Progress, io.Discard)}
}

// Validate returns an error for a load that can't be run.
func (o Options) Validate() error { return cmp.Or(o.Shape.validate(), o.Pace.validate(o.Watchers)) }

// Receivers is how many watchers that are no laggards get an event, on average.
func (o Options) Receivers() float64 {
	slow, stalled := o.laggards(o.Watchers)
	return float64(o.Watchers-slow-stalled) / float64(o.Groups())
}

// maxDeliveries bounds a load, whose watchers keep a bit for each event: half a GiB of bits.
const maxDeliveries = 1 << 32

// validate checks the pace of a load with this number of watchers.
func (p Pace) validate(watchers int) error {
	for _, share := range []float64{p.Slow, p.Stalled} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("a share of %g of the watchers: give a number from 0 to 1", share)
		}
	}
	slow, stalled := p.laggards(watchers)
	events := p.Rate * p.Duration.Seconds()
	switch {
	case p.Rate <= 0 || p.Duration <= 0 || p.Drain <= 0:
		return fmt.Errorf("a rate of %g events/s for %s, with %s to drain: all must be positive",
			p.Rate, p.Duration, p.Drain)
	case events < 0.5:
		return fmt.Errorf("%g events/s for %s is less than one event: raise the rate or the duration",
			p.Rate, p.Duration)
	case events*float64(watchers) > maxDeliveries:
		return fmt.Errorf("%d watchers x %g events/s x %s is more than %d deliveries: lower one of them",
			watchers, p.Rate, p.Duration, maxDeliveries)
	case slow+stalled >= watchers:
		return fmt.Errorf("%d slow and %d stalled of %d watchers: leave at least one that is neither",
			slow, stalled, watchers)
	}
	return nil
}
