package results

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

// Change is how one measure has changed.
type Change struct {
	Measure string `json:"measure"`
	// Ratio is the new time divided by the old one, and Low to High its confidence interval by bootstrap.
	// If the calibration shows that the machine itself became faster or slower, all three are divided by
	// the ratio of the calibration.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Rounds is how many rounds it takes on each side to detect a change of 5% with a probability of 80%.
	Rounds int `json:"roundsFor5Percent"`
}

// Changes are what Compare has found, by measure.
type Changes struct {
	Confidence float64  `json:"confidence"` // of each interval; of all together it is 95%
	Changes    []Change `json:"changes"`
}

// ErrSlower says that a measure takes longer than in the report that it was compared with.
var ErrSlower = errors.New("slower")

// smallest is the smallest change that counts, for all of its interval: what is smaller comes and
// goes with how a program lies in memory, and with the minute in which it runs on a shared machine.
const smallest = 0.03

// Compare compares two reports of one machine.
func Compare(old, now AllReport) (Changes, error) {
	if old.Machine.CPU != now.Machine.CPU || old.Machine.GOMAXPROCS != now.Machine.GOMAXPROCS ||
		old.Quick != now.Quick {
		return Changes{}, fmt.Errorf("compare: the old report is of %s, quick=%t, and the new one of %s, quick=%t: "+
			"measure both in the same way", old.Machine, old.Quick, now.Machine, now.Quick)
	}
	names := slices.DeleteFunc(slices.Clone(Measures),
		func(name string) bool { return len(old.samples(name)) < 2 || len(now.samples(name)) < 2 })
	if len(names) == 0 {
		return Changes{}, errors.New("compare: the reports have no measure in common, of two rounds or more")
	}
	c := Changes{Confidence: 1 - 0.05/float64(len(names))}
	var machine []float64 // the ratios of the calibration, if it has changed
	for _, name := range names {
		before, after := old.samples(name), now.samples(name)
		change := compare(name, before, after, machine, c.Confidence)
		if name == MeasureCalibration && change.verdict() != "" {
			machine = ratios(before, after)
		}
		c.Changes = append(c.Changes, change)
	}
	return c, nil
}

// samples returns the samples of a measure, none if it was not measured.
func (r AllReport) samples(name string) []float64 {
	at := slices.IndexFunc(r.Measures, func(m Measure) bool {
		return m.Name == name || name == MeasureCalibration && m.Name == "yardstick" // as reports of 0.1.0 have it
	})
	if at < 0 {
		return nil
	}
	return r.Measures[at].Samples
}

// resamples is how often the bootstrap draws: enough for some of them to be beyond each end of an interval.
const resamples = 5_000

// compare compares the samples of one measure, divided by the ratios of the calibration if there are any.
func compare(name string, before, after, calibration []float64, confidence float64) Change {
	ratio, drawn := low(slices.Clone(after))/low(slices.Clone(before)), ratios(before, after)
	if calibration != nil {
		ratio /= mean(calibration)
		for i := range drawn {
			drawn[i] /= calibration[i]
		}
	}
	slices.Sort(drawn)
	at := func(share float64) float64 { return drawn[int(share*float64(len(drawn)-1))] }
	return Change{
		Measure: name, Ratio: ratio, Low: at((1 - confidence) / 2), High: at((1 + confidence) / 2),
		Rounds: rounds(drawn, len(before), len(after), confidence),
	}
}

// ratios draws bootstrap samples of the ratio of the new times to the old ones. The same times
// always give the same ratios.
func ratios(before, after []float64) []float64 {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same reports always give the same answer
	before, after = slices.Sorted(slices.Values(before)), slices.Sorted(slices.Values(after))
	drawn := make([]float64, resamples)
	for i := range drawn {
		drawn[i] = lowOfResample(random, after) / lowOfResample(random, before)
	}
	return drawn
}

// lowOfResample is low of as many samples as there are, each drawn at random. The samples are sorted: it counts
// how often each is drawn, which is faster than to sort what is drawn.
func lowOfResample(random *rand.Rand, sorted []float64) float64 {
	times := make([]int, len(sorted))
	for range sorted {
		times[random.IntN(len(sorted))]++
	}
	half, sum := (len(sorted)+1)/2, 0.0
	left := half
	for i, sample := range sorted {
		n := min(times[i], left)
		sum += float64(n) * sample
		left -= n
	}
	return sum / float64(half)
}

// low is the mean of the lower half of the samples, on which busy rounds have no effect. It sorts
// the samples in place.
func low(samples []float64) float64 {
	slices.Sort(samples)
	return mean(samples[:(len(samples)+1)/2])
}

func mean(samples []float64) float64 {
	sum := 0.0
	for _, sample := range samples {
		sum += sample
	}
	return sum / float64(len(samples))
}

// rounds is how many rounds it takes on each side to detect a change of 5% with a probability of
// 80%. The spread of the ratio shrinks with the square root of the number of rounds.
func rounds(ratios []float64, before, after int, confidence float64) int {
	logs, squares := make([]float64, len(ratios)), make([]float64, len(ratios))
	for i, ratio := range ratios {
		logs[i] = math.Log(ratio)
		squares[i] = logs[i] * logs[i]
	}
	variance := mean(squares) - mean(logs)*mean(logs)
	quantiles := math.Sqrt2 * (math.Erfinv(confidence) + math.Erfinv(2*0.8-1)) // of a normal distribution
	enough := math.Log(1.05/(1+smallest)) / quantiles
	many := 2 / (1/float64(before) + 1/float64(after)) // rounds of each side, on average
	return max(2, int(math.Ceil(many*variance/(enough*enough))))
}

// verdict says what the interval tells.
func (c Change) verdict() string {
	switch {
	case c.Low > 1+smallest:
		return "slower"
	case c.High < 1-smallest:
		return "faster"
	}
	return ""
}

// Err is an ErrSlower that names the measures that take longer, nil if none does.
func (c Changes) Err() error {
	var slower []string
	for _, change := range c.Changes {
		if change.verdict() == "slower" && change.Measure != MeasureCalibration {
			slower = append(slower, change.Measure)
		}
	}
	if slower == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrSlower, strings.Join(slower, ", "))
}

func (c Changes) WriteText(w *bytes.Buffer) {
	fmt.Fprintf(w, "\nnew time / old time, with intervals that all hold with 95%% confidence\n")
	if at := slices.IndexFunc(c.Changes, func(c Change) bool { return c.Measure == MeasureCalibration }); at >= 0 &&
		c.Changes[at].verdict() != "" {
		fmt.Fprintf(w, "the machine itself is %s, so that all else is divided by the calibration\n",
			c.Changes[at].verdict())
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tratio\tinterval\t\trounds to see 5%")
	for _, change := range c.Changes {
		fmt.Fprintf(table, "%s\t%.3f\t%.3f to %.3f\t%s\t%d\n", change.Measure, change.Ratio, change.Low, change.High,
			change.verdict(), change.Rounds)
	}
	table.Flush()
}
