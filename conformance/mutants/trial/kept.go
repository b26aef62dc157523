package trial

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"snowglobe.test/conformance/mutants/mutation"
)

// Kept is what is known about mutants from all trials.
type Kept struct {
	// Release of upstream.
	Release string `json:"release"`
	// Systems are how many mutants there are.
	Systems map[string]Count `json:"systems"`
	// Verdicts are in the order of their IDs.
	Verdicts []Verdict `json:"verdicts"`
}

// Count is how many mutants a system has.
type Count struct {
	Made int `json:"made"`
	// Reached are those that a case, or the start of a control plane, reaches.
	Reached int `json:"reached"`
}

// ReadKept reads what was kept.
func ReadKept(text []byte) (*Kept, error) {
	k := &Kept{}
	if err := json.Unmarshal(text, k); err != nil {
		return nil, fmt.Errorf("read the verdicts that are kept: %w", err)
	}
	return k, nil
}

// Text is what is kept as a file: a line for each verdict, so that changes can be read.
func (k *Kept) Text() ([]byte, error) {
	var out bytes.Buffer
	counts, err := json.Marshal(k.Systems)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&out, "{\n  \"release\": %q,\n  \"systems\": %s,\n  \"verdicts\": [", k.Release, counts)
	for i, v := range k.Verdicts {
		line, err := marshal(v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    " + line)
	}
	out.WriteString("\n  ]\n}\n")
	return out.Bytes(), nil
}

// marshal leaves <, > and & as they are, which source is full of.
func marshal(v any) (string, error) {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// Count counts the mutants of each system.
func (k *Kept) Count(mutants []mutation.Mutant, reached map[int]bool) {
	k.Systems = map[string]Count{}
	for _, m := range mutants {
		count := k.Systems[m.System]
		count.Made++
		if reached[m.Switch] {
			count.Reached++
		}
		k.Systems[m.System] = count
	}
}

// Add keeps verdicts, in place of older ones about the same mutants. The reason given by hand
// stays while a mutant survives.
func (k *Kept) Add(verdicts []Verdict) {
	byID := map[string]Verdict{}
	for _, v := range k.Verdicts {
		byID[v.ID] = v
	}
	for _, v := range verdicts {
		if v.Result != Killed {
			v.Reason = cmp.Or(v.Reason, byID[v.ID].Reason)
		}
		byID[v.ID] = v
	}
	k.Verdicts = k.Verdicts[:0]
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		k.Verdicts = append(k.Verdicts, byID[id])
	}
}

// Fresh are the mutants about which nothing is kept.
func (k *Kept) Fresh(mutants []mutation.Mutant) []mutation.Mutant {
	known := map[string]bool{}
	for _, v := range k.Verdicts {
		known[v.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(mutants), func(m mutation.Mutant) bool { return known[m.ID] })
}

// Open are the mutants that survived, or had no time, and whose reason is not known.
func (k *Kept) Open(mutants []mutation.Mutant) []mutation.Mutant {
	open := map[string]bool{}
	for _, v := range k.Verdicts {
		open[v.ID] = v.Result != Killed && v.Reason == ""
	}
	return slices.DeleteFunc(slices.Clone(mutants), func(m mutation.Mutant) bool { return !open[m.ID] })
}
