package bench

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"
)

// Change is what has become of one measure.
type Change struct {
	Measure string `json:"measure"`
	// Ratio is the new time divided by the old one, each in yardsticks of its round, so that what
	// else the machine did counts for less; with its confidence interval, by bootstrap.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Rounds is how many rounds of each side would see a change of 5% four times of five.
	Rounds int `json:"roundsFor5Percent"`
}

// Changes are what Compare has found, by measure.
type Changes struct {
	Confidence float64  `json:"confidence"` // of each interval; of all together it is 95%
	Changes    []Change `json:"changes"`
}

// ErrSlower says that a measure takes longer than in the report that it was compared with.
var ErrSlower = errors.New("slower")

// smallest is the smallest change that counts: what is smaller comes and goes with how a program
// lies in memory.
const smallest = 0.03

// Compare compares two reports of one machine.
func Compare(old, now AllReport) (Changes, error) {
	if old.Machine.CPU != now.Machine.CPU || old.Machine.GOMAXPROCS != now.Machine.GOMAXPROCS || old.Quick != now.Quick {
		return Changes{}, fmt.Errorf("compare: the old report is of %s, quick=%t, and the new one of %s, quick=%t: measure both in the same way", old.Machine, old.Quick, now.Machine, now.Quick)
	}
	before, after := old.inYardsticks(), now.inYardsticks()
	names := slices.DeleteFunc(slices.Clone(measures), func(name string) bool { return len(before[name]) < 2 || len(after[name]) < 2 })
	if len(names) == 0 {
		return Changes{}, errors.New("compare: the reports have no measure in common, of two rounds or more")
	}
	c := Changes{Confidence: 1 - 0.05/float64(len(names))}
	for _, name := range names {
		c.Changes = append(c.Changes, compare(name, before[name], after[name], c.Confidence))
	}
	return c, nil
}

// inYardsticks returns the samples of each measure, divided by the yardstick of their round.
func (r AllReport) inYardsticks() map[string][]float64 {
	at := slices.IndexFunc(r.Measures, func(m Measure) bool { return m.Name == measureYardstick })
	if at < 0 {
		return nil
	}
	samples := map[string][]float64{}
	for _, m := range r.Measures {
		if m.Name == measureYardstick || len(m.Samples) != len(r.Measures[at].Samples) {
			continue
		}
		for round, sample := range m.Samples {
			samples[m.Name] = append(samples[m.Name], sample/r.Measures[at].Samples[round])
		}
	}
	return samples
}

// resamples is how often the bootstrap draws: enough for some of them to be beyond each end of an interval.
const resamples = 5_000

// compare compares the samples of one measure.
func compare(name string, before, after []float64, confidence float64) Change {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same reports always give the same answer
	ratios := make([]float64, resamples)
	for i := range ratios {
		ratios[i] = middle(resample(random, after)) / middle(resample(random, before))
	}
	slices.Sort(ratios)
	at := func(share float64) float64 { return ratios[int(share*float64(len(ratios)-1))] }
	return Change{
		Measure: name, Ratio: middle(slices.Clone(after)) / middle(slices.Clone(before)),
		Low: at((1 - confidence) / 2), High: at((1 + confidence) / 2),
		Rounds: rounds(ratios, len(before), len(after)),
	}
}

func resample(random *rand.Rand, samples []float64) []float64 {
	drawn := make([]float64, len(samples))
	for i := range drawn {
		drawn[i] = samples[random.IntN(len(samples))]
	}
	return drawn
}

// middle is the mean of the middle three fifths, which a few busy rounds do not move. It sorts.
func middle(samples []float64) float64 {
	slices.Sort(samples)
	cut := len(samples) / 5
	sum := 0.0
	for _, sample := range samples[cut : len(samples)-cut] {
		sum += sample
	}
	return sum / float64(len(samples)-2*cut)
}

// rounds is how many rounds of each side would see a change of 5% four times of five: the spread
// of the ratio shrinks with the square root of their number.
func rounds(ratios []float64, before, after int) int {
	const quantiles = 1.96 + 0.84 // of a normal distribution: 97.5% and 80%
	mean, squares := 0.0, 0.0
	for _, ratio := range ratios {
		mean += math.Log(ratio) / float64(len(ratios))
	}
	for _, ratio := range ratios {
		squares += math.Pow(math.Log(ratio)-mean, 2) / float64(len(ratios))
	}
	many := 2 / (1/float64(before) + 1/float64(after)) // rounds of each side, on average
	return max(2, int(math.Ceil(many*squares*math.Pow(quantiles/math.Log(1.05), 2))))
}

// verdict says what the interval tells.
func (c Change) verdict() string {
	switch {
	case c.Low > 1 && c.Ratio > 1+smallest:
		return "slower"
	case c.High < 1 && c.Ratio < 1-smallest:
		return "faster"
	}
	return ""
}

// Err is an ErrSlower that names the measures that take longer, nil if none does.
func (c Changes) Err() error {
	var slower []string
	for _, change := range c.Changes {
		if change.verdict() == "slower" {
			slower = append(slower, change.Measure)
		}
	}
	if slower == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrSlower, strings.Join(slower, ", "))
}

func (c Changes) WriteText(w *bytes.Buffer) {
	fmt.Fprintf(w, "\nnew time / old time, with intervals that all hold with 95%% confidence\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tratio\tinterval\t\trounds to see 5%")
	for _, change := range c.Changes {
		fmt.Fprintf(table, "%s\t%.3f\t%.3f to %.3f\t%s\t%d\n", change.Measure, change.Ratio, change.Low, change.High, change.verdict(), change.Rounds)
	}
	table.Flush()
}
