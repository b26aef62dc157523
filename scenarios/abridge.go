package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/trace"
)

// loopbackUser is who an API server is when it calls itself.
const loopbackUser = "system:apiserver"

// withoutRoutine leaves out the requests that servers make to themselves, unless
// they failed, and returns how many those were.
func withoutRoutine(records []trace.Record) (shown []trace.Record, hidden int) {
	shown = slices.DeleteFunc(slices.Clone(records), func(rec trace.Record) bool {
		request, ok := rec.Event.(trace.Request)
		return ok && request.User == loopbackUser && request.Err == nil && request.Code < 500 && request.Code != 429
	})
	return shown, len(records) - len(shown)
}

// abridge leaves in what tells the script's story: its own lines and requests,
// the hooks that it bent or named and their checks, the signals of a server's
// life, and whatever failed. It returns how much it left out.
func abridge(records []trace.Record) (shown []trace.Record, hidden int) {
	planes, named := map[string]*plane{}, namedIn(records)
	for _, rec := range records {
		if planes[rec.ControlPlane] == nil {
			planes[rec.ControlPlane] = &plane{named: named[rec.ControlPlane], held: map[string]bool{}, checks: map[string]bool{}}
		}
		if hook, ok := rec.Event.(trace.Hook); ok && hook.Phase == trace.Held {
			planes[rec.ControlPlane].held[hook.Name] = true
		}
	}
	for _, rec := range records {
		event := planes[rec.ControlPlane].abridge(rec.Event)
		if event == nil {
			hidden++
			continue
		}
		rec.Event = event
		shown = append(shown, rec)
	}
	return shown, hidden
}

// plane is what is known of one control plane while its events are abridged.
type plane struct {
	named  map[string]bool // words of the commands it was given
	held   map[string]bool // hooks that were held at the start
	told   bool            // how many hooks are held
	failed bool            // a hook has failed, and the server goes down
	ready  bool            // the server has been ready
	checks map[string]bool // checks by name, as they were last seen
}

// manyHeld is from how many on held hooks are counted instead of listed.
const manyHeld = 5

// abridge returns the event, another that stands for it, or nil.
func (p *plane) abridge(event trace.Event) trace.Event {
	shown := true
	switch e := event.(type) {
	case trace.Stage:
		shown = e.Err != nil
	case trace.Signal:
		p.ready = p.ready || e.Name == hasBeenReady
		shown = slices.Contains(milestones, e.Name)
	case trace.Hook:
		return p.abridgeHook(e)
	case trace.Check:
		shown = p.showsCheck(e)
	case trace.Request:
		return abridgeRequest(e)
	}
	if !shown {
		return nil
	}
	return event
}

const hasBeenReady = "HasBeenReady"

// milestones are the lifecycle signals that everybody should know.
var milestones = []string{"MuxAndDiscoveryComplete", hasBeenReady, "ShutdownInitiated", "HTTPServerStoppedListening"}

// abridgeRequest leaves out requests that the script has not asked for, and of
// the others what goes without saying.
func abridgeRequest(request trace.Request) trace.Event {
	if request.UserAgent != scriptAgent || request.Phase != trace.End || request.Verb == "watch" {
		return nil
	}
	if request.User == envtest.AdminUser {
		request.User = ""
	}
	request.URI = strings.TrimSuffix(request.URI, applyQuery)
	return request
}

func (p *plane) abridgeHook(hook trace.Hook) trace.Event {
	many := len(p.held) >= manyHeld
	switch {
	case hook.Err != nil && !p.failed:
		p.failed = true
		return hook
	case p.failed:
		return nil // the way down is upstream's, and ours
	case hook.Phase == trace.Held && many && !p.told:
		p.told = true
		return trace.Note{Text: fmt.Sprintf("%d post-start hooks are held", len(p.held))}
	case many, hook.Phase == trace.Start && p.held[hook.Name]:
		return nil // their checks tell the rest
	case hook.Kind == trace.PostStart && (p.held[hook.Name] || p.named[hook.Name]):
		return hook
	}
	return nil
}

func (p *plane) showsCheck(check trace.Check) bool {
	was, seen := p.checks[check.Name]
	p.checks[check.Name] = check.OK
	hook, ofHook := strings.CutPrefix(check.Name, checkOfHook(""))
	told := ofHook && (p.held[hook] || p.named[hook])
	switch {
	case p.ready && seen && was && !check.OK:
		return true
	case !seen && len(p.held) >= manyHeld:
		return false // as many lines again
	}
	return told || seen && len(p.held) >= manyHeld
}

// namedIn returns the words of a script's commands, by the control plane they
// were said to.
func namedIn(records []trace.Record) map[string]map[string]bool {
	named := map[string]map[string]bool{}
	for _, rec := range records {
		note, ok := rec.Event.(trace.Note)
		if !ok || !strings.HasPrefix(note.Text, string(commandLine)) {
			continue
		}
		if named[rec.ControlPlane] == nil {
			named[rec.ControlPlane] = map[string]bool{}
		}
		for word := range strings.FieldsFuncSeq(note.Text, func(r rune) bool { return strings.ContainsRune(" ='\"", r) }) {
			named[rec.ControlPlane][word] = true
		}
	}
	return named
}
