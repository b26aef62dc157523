// Package htmlpage owns what all our HTML pages share: their colours, for light and dark, and
// the hashes by which a page's content security policy lets its own style and program in.
package htmlpage

import (
	"crypto/sha256"
	_ "embed" // for the style sheet
	"encoding/base64"
)

// Colours is the beginning of a page's style sheet: the colours as custom properties. An
// attribute data-theme of the root element, "light" or "dark", wins over the system's choice.
//
//go:embed colours.css
var Colours string

// Hash is a source of a content security policy: the style or program with this text.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
