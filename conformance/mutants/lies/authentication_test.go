package lies_test

import (
	"net/http"
	"regexp"
)

// asToken lies about requests with a bearer token that matches; "^$" is none.
func asToken(token string, answer func(*http.Request, *http.Response)) func(*http.Request, *http.Response) {
	matches := regexp.MustCompile(token)
	return func(req *http.Request, resp *http.Response) {
		if matches.MatchString(req.Header.Get("Authorization")) {
			answer(req, resp)
		}
	}
}

func authenticationLies() map[string][]lie {
	return map[string][]lie{
		"S7/unknown-token-is-401": {
			changed("it is anonymous", "GET", `^/version`, code(401, 200)),
			changed("unknown paths are open", "GET", `^/s7`, code(401, 404)),
			changed("it says why", "GET", `^/readyz`, text(`"message": ?"Unauthorized"`, `"message":"invalid bearer token"`)),
			changed("nobody comes in", "GET", `^/version`, code(200, 401)),
		},
		"S7/anonymous-is-a-user-of-few-rights": {
			changed("it is nobody", "GET", `^/api`, code(403, 401)),
			changed("metrics are open", "GET", `^/metrics`, code(403, 200)),
			changed("livez is closed", "GET", `^/livez`, code(200, 403)),
		},
		"S7/anonymous-can-be-limited-to-paths": {
			changed("to the paths and those below", "GET", `^/healthz/ping`, code(401, 200)),
			changed("to no path", "GET", `^/livez`, code(200, 401)),
			changed("for everybody", "GET", `^/version`, code(200, 401)),
		},
		"S7/anonymous-can-be-turned-off": {
			changed("not for health", "GET", `^/healthz`, code(401, 200)),
			changed("for everybody", "GET", `^/version`, code(200, 401)),
		},
		"S7/self-review-tells-who-one-is": {
			asked("without groups", "POST", whoami, header("Impersonate-Group", "")),
			changed("without a name", "POST", whoami, text(`"username":"jane"`, `"username":""`)),
			changed("without a time", "POST", whoami, text(`"creationTimestamp":"[^"]*"`, `"creationTimestamp":null`)),
		},
		"S7/account-token-is-its-account": {
			changed("no UID", "POST", whoami, text(`"uid":"[^"]*",`, ``)),
			changed("no ID", "POST", whoami, text(`"JTI=[^"]*"`, `"JTI="`)),
			changed("no group of the namespace", "POST", whoami, text(`"system:serviceaccounts:[^"]*",`, ``)),
			asked("for a day", "POST", tokens, sent(`"expirationSeconds":null`, `"expirationSeconds":86400`)),
			asked("another audience", "POST", tokens, sent(`"audiences":null`, `"audiences":["other"]`)),
		},
		"S7/token-holds-for-its-audiences": {
			changed("for all", "POST", whoami, code(401, 201)),
			asked("all audiences match", "POST", `/tokenreviews`, sent(`"audiences":\["vault","shop"\]`, `"audiences":["vault","bank"]`)),
			changed("authenticated all the same", "POST", `/tokenreviews`, text(`"status":\{"user"`, `"status":{"authenticated":true,"user"`)),
		},
		"S7/token-review-tells-whose-a-token-is": {
			changed("no reason", "POST", `/tokenreviews`, text(`invalid bearer token`, ``)),
			changed("no audiences", "POST", `/tokenreviews`, text(`"audiences":\[[^]]*\]`, `"audiences":[]`)),
			changed("no token will do", "POST", `/tokenreviews`, code(400, 201)),
		},
		"S7/malformed-token-request-is-refused": {
			changed("any time", "POST", tokens, code(422, 201)),
			changed("any account", "POST", tokens, code(404, 201)),
			changed("any UID", "POST", tokens, code(409, 201)),
			changed("any kind", "POST", tokens, code(400, 201)),
		},
		"S7/changed-token-is-worthless": {changed("it is not", "POST", whoami, code(401, 201))},
		"S7/token-dies-with-its-account": {
			changed("it lives", "POST", whoami, code(401, 201)),
			changed("nobody comes in", "POST", whoami, fromThe(2, code(201, 401))),
		},
		"S7/token-dies-with-its-secret": {
			changed("it lives", "POST", whoami, code(401, 201)),
			asked("it is not bound", "POST", tokens, sent(`"boundObjectRef":\{[^}]*\}`, `"boundObjectRef":null`)),
		},
		"S7/token-dies-with-its-pod": {
			changed("it lives", "POST", whoami, code(401, 201)),
			changed("no node", "POST", whoami, text(`,?"authentication.kubernetes.io/node-name":\["[^"]*"\]`, ``)),
			changed("there is another one", "POST", tokens, code(404, 201)),
		},
		"S7/certificate-names-user-and-groups": {
			changed("no groups", "POST", whoami, text(`"dev",`, ``)),
			changed("no fingerprint", "POST", whoami, text(`X509SHA256=`, `X509=`)),
			changed("no rights", "GET", `/nodes`, code(200, 403)),
		},
		"S7/expired-certificate-is-401": {
			changed("it is anonymous", "GET", `^/version`, code(401, 200)),
			changed("no new one helps", "POST", whoami, code(201, 401)),
		},
		"S7/front-proxy-headers-need-a-front-proxy": {
			changed("not from the anonymous", "GET", `/nodes`, asToken(`^$`, code(403, 200))),
			changed("not from accounts", "GET", `/nodes`, asToken(`Bearer ey`, code(403, 200))),
			changed("extra is kept", "POST", whoami, onlyFirst(text(`"extra":\{`, `"extra":{"project":["snow"],`))),
			changed("they are credentials", "GET", `^/version`, code(401, 200)),
		},
		"S7/bootstrap-token-lets-a-node-in": {
			changed("no groups", "POST", whoami, text(`"system:bootstrappers:north",`, ``)),
			changed("any secret", "POST", whoami, asToken(`fedcba`, code(401, 201))),
			changed("for ever", "POST", whoami, asToken(`lets1n.0123`, code(401, 201))),
		},
		"S7/bootstrap-token-must-be-in-order": {
			changed("for ever", "POST", whoami, asToken(`expir3`, code(401, 201))),
			changed("for signing, too", "POST", whoami, asToken(`unused`, code(401, 201))),
			changed("of any group", "POST", whoami, asToken(`gr0ups`, code(401, 201))),
		},
		"S7/token-webhook-vouches": {
			changed("no UID", "POST", whoami, text(`"uid":"u-1",`, ``)),
			changed("one value", "POST", whoami, text(`"snow","ice"`, `"snow"`)),
			changed("nothing is remembered", "POST", whoami, fromThe(2, code(201, 401))),
		},
		"S7/token-webhook-refuses": {
			changed("no audience counts", "POST", whoami, asToken(`elsewhere`, code(401, 201))),
			changed("an unknown one is anonymous", "POST", whoami, asToken(`strange`, code(401, 403))),
			changed("all audiences must match", "POST", whoami, asToken(`here`, code(201, 401))),
		},
		"S7/failing-token-webhook-is-401": {
			changed("it is 500", "POST", whoami, code(401, 500)),
			changed("nobody comes in", "POST", whoami, asToken(`before`, fromThe(1, code(201, 401)))),
			changed("the failure is remembered", "POST", whoami, asToken(`during`, code(201, 401))),
		},
		"S7/ID-token-of-an-issuer-is-its-user": {
			changed("no groups", "POST", whoami, text(`"ops",`, ``)),
			changed("new keys are unknown", "POST", whoami, text(`"username":"joe"`, `"username":"someone"`)),
		},
		"S7/bad-ID-token-is-401": {
			changed("it is good", "POST", whoami, code(401, 201)),
			changed("it is anonymous", "POST", whoami, code(401, 403)),
		},
	}
}

// tokens is the subresource of service accounts.
const tokens = `/serviceaccounts/[^/]+/token`
