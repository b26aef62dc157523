package lies_test

func conversionLies() map[string][]lie {
	const second = `/v2/widgets`
	return map[string][]lie{
		"S10/conversion-webhook-converts": {
			changed("a get is not converted", "GET", second+`/one`, text(`"colour"`, `"color"`)),
			changed("a watch is not converted", "GET", second+`.*watch`, text(`"colour"`, `"color"`)),
			changed("a list is not converted", "GET", second+`$`, text(`"apiVersion":"([^"]*)/v2","kind":"Widget",`, `"apiVersion":"$1/v1","kind":"Widget",`)),
			asked("a write is not converted", "PATCH", second, sent(`"colour"`, `"color"`)),
		},
		"S10/conversion-failure-is-told": {
			changed("it is not told", "GET", second+`/one`, text(`the colours are gone`, `it failed`)),
			changed("written all the same", "PATCH", second+`/one`, code(500, 200)),
			changed("created all the same", "PATCH", second+`/two`, code(500, 201)),
			changed("the stored version fails too", "GET", `/v1/widgets`, code(200, 500)),
		},
		"S10/conversion-answers-are-checked": {
			changed("they are not", "GET", second+`/one`, code(500, 200)),
			changed("it does not say why", "GET", second+`/one`, text(`must have the same UID`, `no`)),
		},
		"S10/conversion-keeps-metadata": {
			changed("labels stay", "GET", second+`/one`, text(`"form":"v2"`, `"form":"v1"`)),
			changed("finalizers come", "GET", second+`/one`, text(`"labels":`, `"finalizers":["conformance.snowglobe.test/forged"],"labels":`)),
			changed("generations come", "GET", second+`/one`, text(`"generation":1`, `"generation":99`)),
		},
	}
}

func crdListLies() map[string][]lie {
	const strict = `fieldValidation=Strict`
	return map[string][]lie{
		"S10/unknown-fields-in-lists-are-pruned": {
			changed("not by an update", "PUT", widgets, text(`"name":"b"`, `"name":"b","x":1`)),
			changed("not by a patch", "PATCH", widgets, text(`"size":1`, `"size":1,"x":1`)),
			changed("the known are dropped too", "GET", widgets+`/one`, text(`"byName":`, `"byNone":`)),
		},
		"S10/strict-validation-of-every-write": {
			asked("not of an update", "PUT", strict, query("fieldValidation")),
			asked("not of a patch", "PATCH", strict, query("fieldValidation")),
			changed("no warning", "PATCH", `fieldValidation=Warn`, without("Warning")),
		},
		"S10/list-keys-are-unique": {
			changed("another item is blamed", "POST", widgets, text(`spec.keyed\[2\]`, `spec.keyed[0]`)),
			changed("another cause", "POST", widgets, text(`"reason":"FieldValueDuplicate"`, `"reason":"FieldValueInvalid"`)),
			changed("patches may", "PATCH", widgets, code(422, 200)),
		},
		"S10/null-is-kept-or-defaulted": {
			changed("the default wins", "POST", widgets, text(`"both":null`, `"both":"grey"`)),
			changed("no default", "POST", widgets, text(`"defaulted":"grey"`, `"defaulted":null`)),
			changed("null is a string", "POST", widgets, code(422, 201)),
		},
		"S10/unchanged-items-are-tolerated": {
			changed("a moved item is not", "PATCH", widgets+`/old`, code(200, 422)),
			changed("a new one is", "PATCH", widgets+`/old`, code(422, 200)),
		},
		"S10/deprecated-version-warns": {
			changed("no warning", "GET", `/v1alpha1/widgets`, without("Warning")),
			changed("not on a watch", "GET", `/v1beta1/widgets.*watch`, without("Warning")),
			asked("the newest as well", "GET", `/v1/widgets`, path(`/v1/`, "/v1beta1/")),
		},
		"S10/stored-version-stays": {
			changed("it may go", "PUT", crds, code(422, 200)),
			changed("never", "PUT", crds, code(200, 422)),
		},
		"S10/freed-name-is-accepted": {
			changed("another reason", "GET", crds, text(`"reason":"ShortNamesConflict"`, `"reason":"KindConflict"`)),
			changed("accepted twice", "GET", crds, text(`("acceptedNames":\{"plural":"gadgets",)"singular"`, `$1"shortNames":["wdg"],"singular"`)),
		},
		"S10/CEL-rule-says-where-and-why": {
			changed("not where", "POST", widgets, text(`"field":"spec.size"`, `"field":"spec"`)),
			changed("not why", "POST", widgets, text(`"reason":"FieldValueForbidden"`, `"reason":"FieldValueInvalid"`)),
			changed("not what", "POST", widgets, text(`far too large`, `not this`)),
			changed("creations are free", "POST", widgets, text(`red must be earned`, `no`)),
		},
		"S10/selectable-fields-select-watches": {
			asked("the selector is ignored", "GET", widgets+`.*watch`, query("fieldSelector")),
			changed("it stays", "GET", widgets+`.*watch`, text(`"DELETED"`, `"MODIFIED"`)),
			asked("all are deleted", "DELETE", widgets, query("fieldSelector")),
			changed("all fields select", "GET", `status.phase`, code(400, 200)),
		},
	}
}
