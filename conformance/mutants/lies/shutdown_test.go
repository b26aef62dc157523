package lies_test

func shutdownLies() map[string][]lie {
	const stream = configMaps + `.*` + aWatch
	return map[string][]lie{
		"S16/readyz-fails-first": {
			changed("it seems ready", "GET", `^/readyz`, code(500, 200)),
			changed("more is red", "GET", `^/readyz`, text(`\[\+\]ping ok`, "[-]ping failed: reason withheld")),
			changed("it seems dead", "GET", `^/livez`, code(200, 500)),
			changed("watches are over", "GET", stream, event(0, dropped)),
		},
		"S16/shutdown-waits-for-its-hooks": {
			changed("writes are refused", "POST", configMaps, code(201, 503)),
			changed("reads are refused", "GET", `^/version`, code(200, 503)),
		},
		"S16/shutdown-delay-is-kept": {changed("it serves no more", "GET", `^/version`, code(200, 503))},
		"S16/failed-post-start-hook-ends-the-server": {
			changed("no check", "GET", `^/readyz/poststarthook`, code(200, 404)),
			changed("it is not ready", "GET", `^/readyz$`, code(200, 500)),
		},
		"S16/restarted-server-has-what-was-written": {
			changed("it is another object", "GET", configMaps+`/first`, text(`"resourceVersion":"`, `"resourceVersion":"1`)),
			changed("one is lost", "GET", configMaps+`\?`, text(`"name":"second"`, `"name":"other"`)),
			changed("versions begin anew", "POST", configMaps, text(`("name":"third".*"resourceVersion":)"\d+"`, `$1"1"`)),
		},
		"S16/new-requests-are-told-to-retry": {
			changed("they are served", "GET", `^/version`, code(429, 200)),
			changed("no time is told", "GET", `^/version`, without("Retry-After")),
			changed("checks are refused", "GET", `^/livez`, code(200, 429)),
			changed("it is ready", "GET", `^/readyz`, code(500, 200)),
		},
		"S16/requests-in-flight-are-answered": {
			changed("503", "POST", configMaps, code(201, 503)),
			changed("it is not done", "GET", configMaps+`/slow`, code(200, 404)),
		},
		"S16/watches-end-with-the-server": {
			changed("an event is lost", "GET", stream, event(0, dropped)),
			changed("an error comes first", "GET", stream, event(0, failing)),
			asked("it begins anew", "GET", stream, query("resourceVersion")),
		},
		"S16/audit-events-are-flushed": {
			asked("the last is missing", "GET", configMaps+`/second`, path(`/second$`, "/third")),
			asked("another user", "GET", configMaps+`/first`, header("Impersonate-User", "joe")),
		},
	}
}
