package search

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"snowglobe.test/internal/outfile"
)

//go:embed page
var pageFiles embed.FS

// The files of a page in its folder.
const (
	pageFile = "search.md"
	dataFile = "search.json"
)

// CheckPage reports why WritePage could not write into a folder, before anything is measured.
func CheckPage(folder string) error {
	if _, err := (Report{}).with(filepath.Join(folder, dataFile)); err != nil {
		return err
	}
	return outfile.Try(filepath.Join(folder, pageFile))
}

// WritePage writes a page about the report into a folder, and the report itself. What the report has nothing of,
// kernels or tests, stays as the folder has it.
func (r Report) WritePage(folder string) error {
	r, err := r.with(filepath.Join(folder, dataFile))
	if err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	page, err := r.markdown()
	if err != nil {
		return err
	}
	if err := outfile.Write(filepath.Join(folder, dataFile), append(data, '\n')); err != nil {
		return err
	}
	return outfile.Write(filepath.Join(folder, pageFile), page)
}

// with is the report with what it has nothing of taken from a file.
func (r Report) with(file string) (Report, error) {
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case err != nil:
		return Report{}, fmt.Errorf("report: %w", err)
	}
	var there Report
	if err := json.Unmarshal(data, &there); err != nil {
		return Report{}, fmt.Errorf("%s: %w", file, err)
	}
	switch {
	case r.Kernels == nil:
		there.Tests = r.Tests
		return there, nil
	case r.Tests == nil:
		r.Tests = there.Tests
	}
	return r, nil
}

// result is what somebody has published.
type result struct{ Tool, Found, Sum, Worst string }

// others are results on the same kernels, within 100 runs, of these papers and of what they compare with.
var others = []result{
	{"GoAT (IISWC 2021), with 0, 1, 2 and 3 yields", "65, 60, 64 and 66 of 67", "", ""},
	{"GoAT, the best of these for each kernel", "66 of 67", "129", "14"},
	{"goleak, by GoAT", "58 of 67", "", ""},
	{"go-deadlock, by GoAT", "34 of 67", "", ""},
	{"the detector of Go's runtime, by GoAT", "20 of 67", "", ""},
	{"GoPie (ASE 2023)", "66 of 68", "", ""},
	{"go test, by GoPie", "22 of 68", "", ""},
	{"GFuzz, by GoPie", "18 of 68", "", ""},
}

func (r Report) markdown() ([]byte, error) {
	parsed, err := template.New("search.md.tmpl").Funcs(template.FuncMap{
		"rows":      func() int { return r.Strategies[0].rows() },
		"published": func() []result { return others },
		"kernels":   r.kernels,
		"repeated":  func() string { return tally(r.Repeated, r.Repeats, "the same in all of them, for each") },
		"alarms":    func() string { return tally(r.Alarms, 0, "no false alarm") },
		"looked":    lookedAt,
	}).ParseFS(pageFiles, "page/search.md.tmpl")
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	var page bytes.Buffer
	if err := parsed.Execute(&page, r); err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	return page.Bytes(), nil
}

// kernels lists kernels, each with in how many rows if that is not all of them.
func (r Report) kernels(in map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if in[name] < r.Strategies[0].rows() {
			name = fmt.Sprintf("%s (%d)", name, in[name])
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

// tally says of which kernels a number is not as expected, or that there are none.
func tally(numbers map[string]int, expected int, none string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if n := numbers[name]; n != expected {
			list = append(list, fmt.Sprintf("%s %d", name, n))
		}
	}
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}
