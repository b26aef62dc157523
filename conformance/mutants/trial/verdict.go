package trial

// Result is what came of a mutant.
type Result string

// The results of mutants. Undecided are those that survived all cases for which there was time.
const (
	Killed    Result = "killed"
	Survived  Result = "survived"
	Undecided Result = "undecided"
)

// How a mutant was killed.
const (
	ByFailure = "failed"
	ByCrash   = "crashed"
	ByHang    = "hung"
)

// What kills a mutant beside a case.
const (
	AtStart = "start"
	AtEnd   = "end"
)

// Verdict is what came of one mutant.
type Verdict struct {
	ID     string `json:"id"`
	System string `json:"system"`
	Result Result `json:"result"`
	// By is the case that killed it, or AtStart or AtEnd, and How is what it did.
	By  string `json:"by,omitempty"`
	How string `json:"how,omitempty"`
	// Ran is how many cases did not notice it, of those that might.
	Ran int `json:"ran,omitempty"`
	Of  int `json:"of,omitempty"`
	// Change is what was changed. An ID that stands for another change is not this mutant.
	Change string `json:"change"`
	// Reason is why no case can kill it, if that is known.
	Reason string `json:"reason,omitempty"`
}
