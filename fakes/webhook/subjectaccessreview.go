package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"

	"snowglobe.test/fakes/stub"
)

// SubjectAccessReview is the webhook that tells who may do what. By itself it knows
// what Allow, Deny and NoOpinion have told it, and has no opinion on the rest.
type SubjectAccessReview struct {
	server
	// Requests decides the answers and records the calls.
	Requests *stub.Table[AccessRequest, AccessAnswer]

	mu        sync.Mutex
	decisions []decision // oldest first
}

// AccessRequest is what a subject access review webhook is asked.
type AccessRequest struct {
	HTTP HTTP
	authorizationv1.SubjectAccessReviewSpec
}

// AccessAnswer is what it answers.
type AccessAnswer = authorizationv1.SubjectAccessReviewStatus

// AccessRule says how some requests are answered.
type AccessRule = stub.Rule[AccessRequest, AccessAnswer]

// Access is what a user wants to do. What is empty matches anything. With APIGroup,
// Resource, Namespace or Name it matches requests for resources alone, with Path others
// alone.
type Access struct {
	User      string
	Group     string // one of the user's groups
	Verb      string // such as get, or deletecollection
	APIGroup  string // such as apps
	Resource  string // such as pods, or pods/log
	Namespace string
	Name      string
	Path      string // such as /healthz, or /healthz/* for all that begins with /healthz/
}

// decision is what is answered to requests that match.
type decision struct {
	Access
	status AccessAnswer
}

// ServeSubjectAccessReview serves a subject access review webhook with a certificate for
// the hosts, each a DNS name or an IP; without any, for the host of the listener. The
// listener is the webhook's from now on, also if ServeSubjectAccessReview fails.
func ServeSubjectAccessReview(l net.Listener, hosts ...string) (*SubjectAccessReview, error) {
	s := &SubjectAccessReview{}
	s.Requests = stub.NewTable(func(_ context.Context, request AccessRequest) (AccessAnswer, error) {
		return s.review(request.SubjectAccessReviewSpec), nil
	})
	return s, s.serve(l, authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), authorizationv1.AddToScheme,
		"--authorization-webhook-version=v1", s.handle, hosts)
}

// Allow allows what matches, until a later call says otherwise.
func (s *SubjectAccessReview) Allow(access Access, reason string) {
	s.decide(access, AccessAnswer{Allowed: true, Reason: reason})
}

// Deny denies what matches, whatever other authorizers say, until a later call says
// otherwise.
func (s *SubjectAccessReview) Deny(access Access, reason string) {
	s.decide(access, AccessAnswer{Denied: true, Reason: reason})
}

// NoOpinion leaves what matches to other authorizers, until a later call says otherwise.
func (s *SubjectAccessReview) NoOpinion(access Access, reason string) {
	s.decide(access, AccessAnswer{Reason: reason})
}

func (s *SubjectAccessReview) decide(access Access, status AccessAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decisions = append(s.decisions, decision{access, status})
}

func (s *SubjectAccessReview) review(spec authorizationv1.SubjectAccessReviewSpec) AccessAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range slices.Backward(s.decisions) {
		if d.matches(spec) {
			return d.status
		}
	}
	return AccessAnswer{Reason: "the webhook was told nothing about this"}
}

func (a Access) matches(spec authorizationv1.SubjectAccessReviewSpec) bool {
	if a.Group != "" && !slices.Contains(spec.Groups, a.Group) || !isOrAny(a.User, spec.User) {
		return false
	}
	if other := spec.NonResourceAttributes; other != nil {
		forResources := a.APIGroup != "" || a.Resource != "" || a.Namespace != "" || a.Name != ""
		return !forResources && isOrAny(a.Verb, other.Verb) && matchesPath(a.Path, other.Path)
	}
	of := spec.ResourceAttributes
	resource := of.Resource
	if of.Subresource != "" {
		resource += "/" + of.Subresource
	}
	return a.Path == "" && isOrAny(a.Verb, of.Verb) && isOrAny(a.APIGroup, of.Group) && isOrAny(a.Resource, resource) &&
		isOrAny(a.Namespace, of.Namespace) && isOrAny(a.Name, of.Name)
}

func isOrAny(want, got string) bool { return want == "" || want == got }

func matchesPath(want, got string) bool {
	if prefix, below := strings.CutSuffix(want, "*"); below {
		return strings.HasPrefix(got, prefix)
	}
	return isOrAny(want, got)
}

// Kubeconfig is a file for --authorization-webhook-config-file.
func (s *SubjectAccessReview) Kubeconfig() []byte { return s.kubeconfig() }

func (s *SubjectAccessReview) handle(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	err := s.kind.read(r, &review)
	if err == nil && (review.Spec.ResourceAttributes == nil) == (review.Spec.NonResourceAttributes == nil) {
		err = errors.New("the review must have either resourceAttributes or nonResourceAttributes")
	}
	if err == nil && review.Spec.User == "" && len(review.Spec.Groups) == 0 {
		err = errors.New("the review has neither a user nor groups")
	}
	respond(w, r, s.Requests, AccessRequest{origin(r), review.Spec}, err, func(answer AccessAnswer) any {
		return authorizationv1.SubjectAccessReview{TypeMeta: s.kind.typeMeta(), Status: answer}
	})
}
