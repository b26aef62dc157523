package trial

import "time"

// Order is what a process is asked to do.
type Order struct {
	// Cases by their IDs, in their order; none means all.
	Cases []string `json:"cases"`
	// RealTime runs the cases in real time instead of virtual time.
	RealTime bool `json:"realTime"`
}

// Line is what a process says when its control plane is ready, which is a line without a case,
// and after each case.
type Line struct {
	Case    string `json:"case,omitempty"`
	State   string `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
	// Took is time on the wall since the line before.
	Took time.Duration `json:"tookNanoseconds"`
	// Reached are the switches of the mutants that were reached since the line before.
	Reached []int `json:"reached"`
}
