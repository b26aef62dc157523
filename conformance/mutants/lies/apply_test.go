package lies_test

const (
	deployments = `/deployments`
	applied     = configMaps + `/a.*fieldManager=`
)

func strictLies() map[string][]lie {
	const strict = `fieldValidation=Strict`
	return map[string][]lie{
		"S12/strict-validation-of-every-write": {
			asked("not in a create", "POST", configMaps, query("fieldValidation", "Warn")),
			asked("not in an update", "PUT", strict, query("fieldValidation", "Warn")),
			asked("not in a patch", "PATCH", strict, query("fieldValidation", "Warn")),
			asked("never a warning", "", `fieldValidation=Warn`, query("fieldValidation", "Ignore")),
			asked("always a warning", "", `fieldValidation=Ignore`, query("fieldValidation", "Warn")),
			asked("ignored by default", "", `\?&dryRun=All`, query("fieldValidation", "Ignore")),
		},
		"S12/strict-validation-finds-duplicates": {
			asked("not in an update", "PUT", strict, query("fieldValidation", "Warn")),
			asked("not in a patch", "PATCH", strict+`$`, query("fieldValidation", "Warn")),
			asked("not in an apply", "PATCH", strict+`&fieldManager`, query("fieldValidation", "Warn")),
			changed("no warning", "PATCH", `fieldValidation=Warn`, without("Warning")),
			changed("the first holds", "", configMaps, text(`"content":"two"`, `"content":"one"`)),
		},
		"S12/validation-mode-must-be-known": {
			asked("any mode", "PUT", `fieldValidation=Sometimes`, query("fieldValidation")),
			asked("any dry run", "PATCH", `dryRun=Some`, query("dryRun")),
		},
	}
}

func applyLies() map[string][]lie {
	force := query("force", "true")
	return map[string][]lie{
		"S12/apply-creates-once": {
			changed("200", "PATCH", configMaps, code(201, 200)),
			changed("an update", "PATCH", configMaps, text(`"operation":"Apply"`, `"operation":"Update"`)),
			changed("it owns more", "PATCH", configMaps, text(`"f:color":\{\}`, `"f:color":{},"f:size":{}`)),
			changed("a write each time", "PATCH", configMaps, onlyFirst(text(`"resourceVersion":"\d+"`, `"resourceVersion":"1"`))),
		},
		"S12/apply-hands-a-field-over": {
			asked("by force always", "PATCH", configMaps, force),
			asked("another takes it over", "PATCH", applied+`bob`, query("fieldManager", "carol")),
			changed("it is removed", "PATCH", configMaps, text(`"color":"red",`, "")),
		},
		"S12/apply-dry-run-decides-alike": {
			asked("it is real", "PATCH", configMaps, query("dryRun")),
			asked("by force always", "PATCH", configMaps, force),
			asked("never by force", "PATCH", configMaps, query("force")),
		},
		"S12/update-takes-fields-over": {
			asked("another's", "PUT", configMaps, query("fieldManager", "carol")),
			asked("by force always", "PATCH", configMaps, force),
			asked("never by force", "PATCH", configMaps, query("force")),
		},
		"S12/removed-field-has-no-owner": {
			asked("nothing is removed", "PUT", configMaps, sent(`"data":\{`, `"data":{"color":"red",`)),
			changed("its owner keeps it", "PUT", configMaps, text(`"f:size":\{\}`, `"f:color":{},"f:size":{}`)),
		},
		"S12/managers-before-the-first-apply": {
			asked("not cleared", "PUT", configMaps, sent(`"managedFields":\[\{\}\],?`, "")),
			asked("nobody owned it", "PATCH", applied+`carol`, force),
		},
		"S12/old-update-managers-are-merged": {
			changed("another name", "GET", configMaps+`/a`, text(`"ancient-changes"`, `"old"`)),
			changed("one goes missing", "GET", configMaps+`/a`, text(`("manager":"updater-05","operation":")Update"`, `${1}Apply"`)),
		},
		"S12/apply-merges-lists-by-key": {
			asked("the list is replaced", "PATCH", deployments+`/a.*=bob`, header("Content-Type", "application/merge-patch+json")),
			asked("by force always", "PATCH", deployments, force),
			changed("the item is not named", "PATCH", deployments, text(`\[name=\\"one\\"\]`, `[0]`)),
		},
		"S12/apply-replaces-atomic-values": {
			asked("by force always", "PATCH", deployments, force),
			changed("maps are merged", "PATCH", deployments, text(`"nodeSelector":\{"zone"`, `"nodeSelector":{"disk":"ssd","zone"`)),
			changed("lists are merged", "PATCH", deployments, text(`"args":\["x"\]`, `"args":["x","y"]`)),
		},
		"S12/apply-joins-sets": {
			asked("managers are one", "PATCH", configMaps, query("fieldManager", "one")),
			changed("nothing is lost", "PATCH", applied+`bob`, text(`"finalizers":\["conformance.snowglobe.test/first"\]`, `"finalizers":["conformance.snowglobe.test/first","conformance.snowglobe.test/second"]`)),
		},
		"S12/apply-to-status-is-apart": {
			asked("it is the object", "PATCH", widgets+`/a/status`, path(`/status$`, "")),
			asked("the object is its status", "PATCH", widgets+`/a\?`, path(`$`, "/status")),
			changed("the entry is not named", "PATCH", widgets, text(`"subresource":"status"`, `"subresource":""`)),
		},
		"S12/apply-needs-a-manager": {
			asked("any will do", "PATCH", configMaps+`/a\?$`, query("fieldManager", "x")),
			asked("force is for all", "PATCH", `\?force=true$`, query("force")),
			changed("too long", "PATCH", applied+`x{128}$`, code(201, 422)),
		},
		"S12/apply-of-managed-fields-is-refused": {
			asked("they are ignored", "PATCH", configMaps, sent(`"managedFields":\[[^]]*\],?`, "")),
			asked("any version", "PATCH", configMaps, sent(`"apiVersion":"v2"`, `"apiVersion":"v1"`)),
			changed("another code", "PATCH", configMaps, code(400, 422)),
		},
		"S12/apply-with-uid-does-not-create": {
			asked("the uid is ignored", "PATCH", configMaps, sent(`"uid":"[^"]*",?`, "")),
			asked("the version is ignored", "PATCH", configMaps, sent(`"resourceVersion":"[^"]*"`, `"labels":{}`)),
		},
	}
}
