package fakes

import (
	"fmt"
	"strings"

	"snowglobe.test/fakes/webhook"
)

func serveAdmission(at fakePlace) (*fake, error) {
	hook, err := webhook.ServeAdmission(at.listener, at.host)
	if err != nil {
		return nil, err
	}
	asked := func(r webhook.AdmissionRequest) string {
		return fmt.Sprintf("%s %s %s by %s", r.Operation, r.Resource.Resource, place(r.Namespace, r.Name), r.UserInfo.Username)
	}
	said := func(a webhook.AdmissionAnswer) string {
		if a.Allowed {
			return "allowed"
		}
		return "denied"
	}
	return &fake{server: hook, ca: hook.CA(), use: useOf(hook.Requests, asItIs, constant), calls: callsOf(hook.Requests, asked, said)}, nil
}

func serveConversion(at fakePlace) (*fake, error) {
	hook, err := webhook.ServeConversion(at.listener, at.host)
	if err != nil {
		return nil, err
	}
	hook.HandleRest(nil)
	asked := func(r webhook.ConversionRequest) string {
		return fmt.Sprintf("%d objects to %s", len(r.Objects), r.DesiredAPIVersion)
	}
	said := func(a webhook.ConversionAnswer) string {
		return strings.TrimSpace(fmt.Sprintf("%s %s", a.Result.Status, a.Result.Message))
	}
	return &fake{server: hook, ca: hook.CA(), use: useOf(hook.Requests, asItIs, constant), calls: callsOf(hook.Requests, asked, said)}, nil
}

func serveTokenReview(at fakePlace) (*fake, error) {
	hook, err := webhook.ServeTokenReview(at.listener, at.host)
	if err != nil {
		return nil, err
	}
	asked := func(r webhook.TokenRequest) string { return "token " + r.Token }
	said := func(a webhook.TokenAnswer) string {
		if a.Authenticated {
			return a.User.Username
		}
		return "unknown"
	}
	return &fake{
		server: hook, ca: hook.CA(), use: useOf(hook.Requests, asItIs, constant), calls: callsOf(hook.Requests, asked, said),
		files: map[string][]byte{kubeconfigExtension: hook.Kubeconfig()},
	}, nil
}

func serveSubjectAccessReview(at fakePlace) (*fake, error) {
	hook, err := webhook.ServeSubjectAccessReview(at.listener, at.host)
	if err != nil {
		return nil, err
	}
	asked := func(r webhook.AccessRequest) string {
		if r.NonResourceAttributes != nil {
			return fmt.Sprintf("%s: %s %s", r.User, r.NonResourceAttributes.Verb, r.NonResourceAttributes.Path)
		}
		about := r.ResourceAttributes
		return fmt.Sprintf("%s: %s %s %s", r.User, about.Verb, about.Resource, place(about.Namespace, about.Name))
	}
	said := func(a webhook.AccessAnswer) string {
		switch {
		case a.Allowed:
			return "allowed"
		case a.Denied:
			return "denied"
		}
		return "no opinion"
	}
	return &fake{
		server: hook, ca: hook.CA(), use: useOf(hook.Requests, asItIs, constant), calls: callsOf(hook.Requests, asked, said),
		files: map[string][]byte{kubeconfigExtension: hook.Kubeconfig()},
	}, nil
}

func serveAudit(at fakePlace) (*fake, error) {
	hook, err := webhook.ServeAudit(at.listener, at.host)
	if err != nil {
		return nil, err
	}
	asked := func(r webhook.AuditRequest) string {
		var events []string
		for _, event := range r.Events {
			events = append(events, fmt.Sprintf("%s %s %s by %s", event.Stage, event.Verb, event.RequestURI, event.User.Username))
		}
		return strings.Join(events, "; ")
	}
	said := func(webhook.AuditAnswer) string { return "taken" }
	return &fake{
		server: hook, ca: hook.CA(), use: useOf(hook.Requests, asItIs, constant), calls: callsOf(hook.Requests, asked, said),
		files: map[string][]byte{kubeconfigExtension: hook.Kubeconfig()},
	}, nil
}

// place is the name of an object, such as "default/a", or "a" without a namespace.
func place(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }
