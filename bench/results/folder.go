package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/internal/outfile"
)

// The parts of a page besides the curves of the encodings: PartMany has the last points of the
// curves, PartMemory the memory that a watch takes, PartMost as many watchers as a machine holds, and
// PartShares where the CPU time goes.
const (
	PartMany   = "many"
	PartMemory = "memory"
	PartMost   = "most"
	PartShares = "shares"
)

// PublishParts are the parts of a page that can be measured by themselves.
var PublishParts = []string{"json", "protobuf", load.EncodingCBOR, PartMany, PartMemory, PartMost, PartShares}

// CurveParts are the parts that are curves, each named by its encoding.
var CurveParts = PublishParts[:3]

// Folder has a page about watch fan-out, PERFORMANCE.md, and in a folder performance its plots and the
// raw data that both are made from.
type Folder string

// Page is the file of the page.
func (f Folder) Page() string { return filepath.Join(string(f), "PERFORMANCE.md") }

func (f Folder) data() string { return filepath.Join(string(f), "performance") }

// File is that of the raw data of a part.
func (f Folder) File(part string) string { return filepath.Join(f.data(), part+".json") }

// Merge adds to a new sweep the points of the raw data at values that it did not measure, if both
// are of the same machine and have the same objective.
func (f Folder) Merge(part string, now SweepReport) (SweepReport, error) {
	var old *SweepReport
	err := f.Load(part, &old)
	if err != nil || old == nil || old.Machine != now.Machine || old.Objective != now.Objective {
		return now, err
	}
	measured := now.Values()
	for _, point := range old.Points {
		if !slices.Contains(measured, point.Value) {
			now.Points = append(now.Points, point)
		}
	}
	return now, nil
}

// Load reads the raw data of a part into a pointer to a report, which stays nil if there is none.
func (f Folder) Load(part string, into any) error {
	text, err := os.ReadFile(f.File(part))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read the raw data: %s: %w", f.File(part), err)
	}
	return nil
}

// Keep writes the raw data of a part.
func (f Folder) Keep(part string, measured any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(measured); err != nil {
		return err
	}
	return outfile.Write(f.File(part), text.Bytes())
}

// SharesReport is where the CPU time of a control plane goes, for loads that do not keep the machine
// fully busy.
type SharesReport struct {
	Machine measure.Machine `json:"machine"`
	Date    time.Time       `json:"date"`
	Loads   []SharesLoad    `json:"loads"`
}

// SharesLoad is a load with the shares of its server's CPU time.
type SharesLoad struct {
	WatchLoad
	CPU []measure.CPUShare `json:"cpu"`
}

// published is the raw data of a page.
type published struct {
	Curves map[string]*SweepReport // by encoding
	Many   *SweepReport
	Memory *WatchReport
	Most   *SweepReport
	Shares *SharesReport
}

// read reads the raw data that is there.
func (f Folder) read() (published, error) {
	p := published{Curves: map[string]*SweepReport{}}
	err := errors.Join(f.Load(PartMany, &p.Many), f.Load(PartMemory, &p.Memory), f.Load(PartMost, &p.Most),
		f.Load(PartShares, &p.Shares))
	for _, encoding := range CurveParts {
		var curve *SweepReport
		if err = errors.Join(err, f.Load(encoding, &curve)); curve != nil {
			p.Curves[encoding] = curve
		}
	}
	if err != nil {
		return p, err
	}
	p.extend()
	if p.Any() == nil && p.Shares == nil && p.Memory == nil {
		return p, fmt.Errorf("there is no raw data in %s: measure it first, without --keep", f.data())
	}
	return p, nil
}
