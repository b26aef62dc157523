package trace

import "snowglobe.test/internal/redact"

// redacted returns an event without the credentials that its texts may have: a trace is
// made to be shared. Objects are recorded without content.
func redacted(event Event) Event {
	switch e := event.(type) {
	case Stage:
		e.Err = redact.Error(e.Err)
		return e
	case Hook:
		e.Err = redact.Error(e.Err)
		return e
	case Check:
		e.Reason = redact.Text(e.Reason)
		return e
	case Request:
		e.URI, e.UserAgent, e.Err = redact.Text(e.URI), redact.Text(e.UserAgent), redact.Error(e.Err)
		return e
	case Answer:
		e.URI, e.Err = redact.Text(e.URI), redact.Error(e.Err)
		return e
	case WatchEvent:
		e.URI, e.Err = redact.Text(e.URI), redact.Error(e.Err)
		return e
	case Fault:
		e.Rule, e.Key, e.Err = redact.Text(e.Rule), redact.Text(e.Key), redact.Error(e.Err)
		return e
	case Turn:
		e.Key = redact.Text(e.Key)
		return e
	case Note:
		e.Text = redact.Text(e.Text)
		return e
	}
	return event
}
