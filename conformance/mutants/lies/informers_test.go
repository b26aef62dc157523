package lies_test

func informerLies() map[string][]lie {
	const list = configMaps + `$`
	return map[string][]lie{
		"S17/unsynced-informer-keeps-readyz-red": {
			changed("it seems ready", "GET", `^/readyz\?`, code(500, 200)),
			changed("it seems dead", "GET", `^/livez`, code(200, 500)),
			changed("it never becomes ready", "GET", `^/readyz$`, code(200, 500)),
		},
		"S17/permissions-follow-writes": {
			changed("more is granted", "GET", list, code(403, 200)),
			changed("nothing is granted", "GET", configMaps+`/none`, code(404, 403)),
		},
		"S17/lagging-informer-is-a-stale-view": {changed("granted too early", "GET", list, code(403, 200))},
		"S17/lost-watch-is-resumed":            {changed("it stays granted", "GET", list, code(403, 200))},
		"S17/expired-watch-is-a-new-list":      {changed("it stays granted", "GET", list, code(403, 200))},
		"S17/failed-list-is-tried-again":       {changed("never ready", "GET", `^/readyz`, code(200, 500))},
		"S17/quota-is-known-to-admission": {
			changed("it is not known", "POST", `/secrets`, code(403, 201)),
			changed("it stays", "POST", `/secrets`, code(201, 403)),
			changed("another amount", "POST", `/secrets`, text(`limited: count/secrets=0`, "limited: count/secrets=1")),
		},
		"S17/limits-follow-writes": {
			changed("no default", "POST", `/pods`, text(`"7Mi"`, `"8Mi"`)),
			changed("the old one stays", "POST", `/pods`, text(`"9Mi"`, `"7Mi"`)),
		},
	}
}
