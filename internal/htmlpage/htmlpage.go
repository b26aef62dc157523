// Package htmlpage owns what all our HTML pages share: their colours, for light and dark, how
// their files become one, and the hashes by which a page's content security policy lets its own
// style and program in.
package htmlpage

import (
	"crypto/sha256"
	_ "embed" // for the style sheet
	"encoding/base64"
	"html/template"
	"io"
	"io/fs"
	"maps"
)

// colours are the beginning of a page's style sheet: the colours as custom properties. An
// attribute data-theme of the root element, "light" or "dark", wins over the system's choice.
//
//go:embed colours.css
var colours string

// Execute writes the page of a template, page/page.html.tmpl in files, with data. The template also
// gets .Style, that of page/style.css, .Program, and their hashes, .StyleHash and .ProgramHash.
func Execute(w io.Writer, files fs.FS, program string, data map[string]any) error {
	page, err := template.ParseFS(files, "page/page.html.tmpl")
	if err != nil {
		return err
	}
	style, err := Style(files)
	if err != nil {
		return err
	}
	all := map[string]any{
		"Style": template.CSS(style), "StyleHash": Hash(style),
		"Program": template.JS(program), "ProgramHash": Hash(program),
	}
	maps.Copy(all, data)
	return page.Execute(w, all)
}

// Style is the colours, and page/style.css in files.
func Style(files fs.FS) (string, error) {
	sheet, err := fs.ReadFile(files, "page/style.css")
	return colours + string(sheet), err
}

// Hash is a source of a content security policy: the style or program with this text.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
