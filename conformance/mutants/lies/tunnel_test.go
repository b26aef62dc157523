package lies_test

import "net/http"

func tunnelLies() map[string][]lie {
	const log, exec, nodeProxy = `/log\?`, `/exec\?`, `/nodes/node-1/proxy`
	return map[string][]lie{
		"S2/log-comes-from-the-kubelet": {
			changed("another log", "GET", log, text(`it snows more`, `it rains`)),
			asked("options are lost", "GET", log, query("tailLines")),
			asked("another container", "GET", log, query("container", "app")),
			changed("it is JSON", "GET", log, without("Content-Type")),
		},
		"S2/malformed-log-request-is-refused": {
			asked("the first container is taken", "GET", `/web/log$`, query("container", "app")),
			changed("another message", "GET", `/log$`, text(`choose one of`, `such as`)),
			asked("wrong options are ignored", "GET", `limitBytes`, query("limitBytes")),
		},
		"S2/kubelet-errors-are-passed-on": {
			changed("all are 500", "GET", log, code(404, 500)),
			changed("without a reason", "GET", log, text(`the kubelet says`, `something says`)),
		},
		"S2/node-proxy-reaches-the-kubelet": {
			asked("the query is lost", "GET", nodeProxy, query("a")),
			asked("all methods are GET", "POST", nodeProxy, func(req *http.Request) { req.Method = http.MethodGet }),
			changed("a port is unknown", "GET", `:10250/proxy`, code(200, 404)),
			changed("errors are the server's", "GET", `/no/such/page`, code(404, 500)),
		},
		"S2/exec-runs-at-the-kubelet": {
			asked("another command", "POST", exec, query("command", "other")),
			changed("not at all", "POST", exec, code(101, 403)),
		},
		"S2/port-forward-reaches-the-pod": {changed("not at all", "POST", `/portforward`, code(101, 500))},
		"S2/streams-need-a-place-and-an-upgrade": {
			changed("no upgrade is needed", "POST", exec, text(`Upgrade request required`, `ok`)),
			changed("reading is enough", "POST", exec, code(403, 400)),
			changed("no place is needed", "POST", `/homeless/portforward`, code(400, 200)),
		},
		"S2/node-traffic-goes-through-the-proxy": {
			changed("nothing comes through", "GET", log, code(200, 500)),
			changed("something else comes through", "GET", log, text(`it snows`, `it rains`)),
		},
		"S2/cut-tunnel-fails-what-needs-it": {
			changed("the log ends", "GET", log, code(500, 200)),
			changed("the server is not ready", "GET", `^/readyz`, code(200, 500)),
			changed("it stays cut", "GET", nodeProxy, code(200, 503)),
		},
		"S2/kubelet-that-is-gone-is-an-error": {
			changed("the log ends", "GET", log, code(500, 200)),
			changed("the node proxy says nothing", "GET", nodeProxy, text(`"Status"`, `""`)),
			changed("Pods can't be read", "GET", `/pods/web$`, code(200, 503)),
		},
		"S2/kubelet-must-be-the-right-one": {
			asked("it need not", "GET", log, query("insecureSkipTLSVerifyBackend", "true")),
			asked("never another", "GET", log, query("insecureSkipTLSVerifyBackend")),
			changed("no reason", "GET", log, text(`certificate signed by unknown authority`, `no`)),
		},
		"S2/redirects-are-refused": {
			changed("the log is followed", "GET", log, code(500, 200)),
			asked("exec is not asked", "GET", log, path(`/pods/web/log`, "/nodes/node-1/proxy/healthz")),
		},
	}
}
