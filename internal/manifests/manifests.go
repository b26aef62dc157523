// Package manifests owns how files of objects are cut into objects: YAML documents, JSON objects one
// after the other, and Lists. It knows no kind of object but the List, and leaves what it can't read
// to who reads the object.
package manifests

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Object is one of the objects of a file, or a document without one, as of comments.
type Object struct {
	Text     string // YAML or JSON
	Line     int    // at which it begins in the file; a List's for its items
	Document int    // from 1; JSON objects count as documents
	Item     int    // of a List, from 1; 0 if the document is the object
}

// Place says where the object is in its file.
func (o Object) Place() string {
	if o.Item > 0 {
		return fmt.Sprintf("document %d, item %d", o.Document, o.Item)
	}
	return fmt.Sprintf("document %d", o.Document)
}

// Cut returns the objects of a file.
func Cut(text string) []Object {
	var objects []Object
	number := 0
	for _, part := range documents(text) {
		for _, document := range jsonObjects(part) {
			number++
			document.Document = number
			objects = append(objects, items(document)...)
		}
	}
	return objects
}

// documents cuts a file where a line begins with "---".
func documents(text string) []Object {
	var all []Object
	document := Object{Line: 1}
	line, begin, end := 1, 0, 0
	for part := range strings.Lines(text) {
		line++
		before := end
		end += len(part)
		if after, ends := strings.CutPrefix(part, "---"); ends && isComment(after) {
			document.Text = text[begin:before]
			all = append(all, document)
			document, begin = Object{Line: line}, end
		}
	}
	document.Text = text[begin:]
	return append(all, document)
}

// isComment reports whether the rest of a line says nothing.
func isComment(rest string) bool {
	rest = strings.TrimSpace(rest)
	return rest == "" || strings.HasPrefix(rest, "#")
}

// jsonObjects cuts a document that is JSON into the objects that follow one another in it.
func jsonObjects(document Object) (objects []Object) {
	if !strings.HasPrefix(strings.TrimSpace(document.Text), "{") {
		return []Object{document}
	}
	decoder := json.NewDecoder(strings.NewReader(document.Text))
	for begin := int64(0); ; begin = decoder.InputOffset() {
		var object json.RawMessage
		if err := decoder.Decode(&object); err != nil {
			rest := document.Text[begin:]
			if len(objects) == 0 || strings.TrimSpace(rest) != "" { // not JSON, after all
				objects = append(objects, Object{Text: rest, Line: document.Line + strings.Count(document.Text[:begin], "\n")})
			}
			return objects
		}
		before := document.Text[:decoder.InputOffset()-int64(len(object))]
		objects = append(objects, Object{Text: string(object), Line: document.Line + strings.Count(before, "\n")})
	}
}

// mayBeList spares most documents that they are read.
var mayBeList = regexp.MustCompile(`\bkind["']?\s*:\s*["']?List\b`)

// items returns the objects of a document that is a List, or else the document.
func items(document Object) []Object {
	if !mayBeList.MatchString(document.Text) {
		return []Object{document}
	}
	var list struct {
		APIVersion, Kind string
		Items            []json.RawMessage
	}
	if err := yaml.Unmarshal([]byte(document.Text), &list); err != nil || list.APIVersion != "v1" || list.Kind != "List" {
		return []Object{document}
	}
	objects := make([]Object, len(list.Items))
	for i, item := range list.Items {
		objects[i] = Object{Text: string(item), Line: document.Line, Document: document.Document, Item: i + 1}
	}
	return objects
}
