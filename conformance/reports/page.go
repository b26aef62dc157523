package reports

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/internal/htmlpage"
	"snowglobe.test/internal/outfile"
)

//go:embed page
var pageFiles embed.FS

// WriteHTML writes a page of one or more reports, as one file that needs nothing else:
// systems by targets, each case with its promise, and what broke with the requests around it.
func WriteHTML(w io.Writer, reports ...engine.Report) error {
	if len(reports) == 0 {
		return errors.New("a page needs a report")
	}
	program, err := pageFiles.ReadFile("page/filter.js")
	if err != nil {
		return err
	}
	if err := htmlpage.Execute(w, pageFiles, string(program),
		map[string]any{"Page": newPageView(reports)}); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// WriteHTMLFile writes the page of reports to a file. It overwrites an existing file and
// creates missing folders.
func WriteHTMLFile(path string, reports ...engine.Report) error {
	var page bytes.Buffer
	err := WriteHTML(&page, reports...)
	if err == nil {
		err = outfile.Write(path, page.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}
