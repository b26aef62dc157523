package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"snowglobe.test/conformance/transcript"
)

// exchangeView is an exchange as the page shows it.
type exchangeView struct {
	transcript.Exchange
	Last bool // it is open at first
}

func exchangeViews(exchanges []transcript.Exchange) (views []exchangeView) {
	for i, e := range exchanges {
		views = append(views, exchangeView{e, i == len(exchanges)-1})
	}
	return views
}

// When tells when the request was made, and how long it took.
func (e exchangeView) When() string {
	text := fmt.Sprintf("after %s", e.At.Round(time.Millisecond))
	if e.Took > 0 {
		text += fmt.Sprintf(", took %s", e.Took.Round(100*time.Microsecond))
	}
	if e.Times > 1 {
		text += fmt.Sprintf(", %d times alike", e.Times)
	}
	return text
}

// Class is that of the answer's code.
func (e exchangeView) Class() string {
	switch {
	case e.Error != "" || e.Status >= 500:
		return "bad"
	case e.Status >= 400:
		return "waiting"
	case e.Status == 0 || e.Open:
		return "plain"
	}
	return "good"
}

// Asked and Answered are the bodies, laid out if they are JSON.
func (e exchangeView) Asked() string { return laidOut(e.Request.Body) }

// Answered is described at Asked.
func (e exchangeView) Answered() string { return laidOut(e.Answer.Body) }

func laidOut(text string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return out.String()
}
