package story

import (
	"fmt"
	"slices"
	"strings"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

// The user agents whose requests a story shows: that of the script's own requests, and that
// of its kubectl.
const (
	ScriptAgent  = "script"
	KubectlAgent = "kubectl"
)

// FieldManager owns the fields that scripts apply.
const FieldManager = "script"

// applyQuery is the query of every apply request.
const applyQuery = "?fieldManager=" + FieldManager + "&force=true"

// CheckOfHook names the readiness check that turns ok when a post-start hook ends.
func CheckOfHook(hook string) string { return "poststarthook/" + hook }

// withoutRoutine leaves out, and counts, servers' successful requests to themselves.
func withoutRoutine(records []trace.Record) (shown []trace.Record, hidden int) {
	shown = slices.DeleteFunc(slices.Clone(records), func(rec trace.Record) bool { return trace.Routine(rec.Event) })
	return shown, len(records) - len(shown)
}

// abridge keeps the script's story: its lines and requests, the hooks it held or named
// and their checks, the main lifecycle signals and every failure. It counts the rest.
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

// plane is the state of one control plane while its events are abridged.
type plane struct {
	named   map[string]bool // words of the commands about it
	held    map[string]bool // hooks held from the start
	counted bool            // the note with the number of held hooks is written
	failed  bool            // a hook has failed, and the server is shutting down
	ready   bool            // the server has been ready
	checks  map[string]bool // the last result of each check, by name
}

// manyHeld is how many hooks must be held for a story to say only how many they are.
const manyHeld = 5

// abridge returns the event, another in its place, or nil to leave it out.
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
	case trace.Fault:
		// An event of the hook itself shows that a rule holds or releases it, and the command that
		// lets a program crash implies the partition.
		shown = (e.Phase == trace.Applied || !strings.HasPrefix(e.Point, fault.HookPoint)) && !p.cutsProgram(e)
	case trace.Request:
		return abridgeRequest(e)
	case trace.Answer, trace.WatchEvent, trace.Write, trace.Turn:
		shown = false // they are there only where the caller has asked for a full trace
	}
	if !shown {
		return nil
	}
	return event
}

const hasBeenReady = "HasBeenReady"

// milestones are the lifecycle signals that a story always shows.
var milestones = []string{"MuxAndDiscoveryComplete", hasBeenReady, "ShutdownInitiated", "HTTPServerStoppedListening"}

// cutsProgram reports whether a fault belongs to the partition that a crash of a program
// makes, and not to a partition that the script made by command.
func (p *plane) cutsProgram(fault trace.Fault) bool {
	return !p.named["partition"] && strings.HasPrefix(fault.Rule, "partition client name=") && strings.HasSuffix(fault.Rule, " optional")
}

// abridgeRequest leaves out requests that neither the script nor its kubectl made, and
// shortens the others: neither the admin's name nor apply's query says anything new.
func abridgeRequest(request trace.Request) trace.Event {
	switch {
	case request.Phase != trace.End || request.Verb == "watch":
		return nil
	case request.UserAgent == KubectlAgent && isDiscovery(request.URI), request.UserAgent != ScriptAgent && request.UserAgent != KubectlAgent:
		return nil
	}
	if request.User == trace.AdminUser {
		request.User = ""
	}
	request.URI = strings.TrimSuffix(request.URI, applyQuery)
	return request
}

// isDiscovery reports whether a client asks for what a server serves, not for an object.
func isDiscovery(uri string) bool {
	path, _, _ := strings.Cut(uri, "?")
	segments := strings.Split(strings.Trim(path, "/"), "/")
	switch segments[0] {
	case "api":
		return len(segments) <= 2 // api/VERSION
	case "apis":
		return len(segments) <= 3 // apis/GROUP/VERSION
	default:
		return segments[0] == "openapi"
	}
}

func (p *plane) abridgeHook(hook trace.Hook) trace.Event {
	many := len(p.held) >= manyHeld
	switch {
	case hook.Err != nil && !p.failed:
		p.failed = true
		return hook
	case p.failed:
		return nil // everything after the failure is only the shutdown
	case hook.Phase == trace.Held && many && !p.counted:
		p.counted = true
		return trace.Note{Text: fmt.Sprintf("%d post-start hooks are held", len(p.held))}
	case many, hook.Phase == trace.Start && p.held[hook.Name]:
		return nil // their checks show the rest
	case hook.Kind == trace.PostStart && (p.held[hook.Name] || p.named[hook.Name]):
		return hook
	}
	return nil
}

func (p *plane) showsCheck(check trace.Check) bool {
	was, seen := p.checks[check.Name]
	p.checks[check.Name] = check.OK
	hook, ofHook := strings.CutPrefix(check.Name, CheckOfHook(""))
	relevant := ofHook && (p.held[hook] || p.named[hook])
	switch {
	case p.ready && seen && was && !check.OK:
		return true
	case !seen && len(p.held) >= manyHeld:
		return false // that would be one more line for every held hook
	}
	return relevant || seen && len(p.held) >= manyHeld
}

// namedIn returns the words of the script's commands about each control plane.
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
