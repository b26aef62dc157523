package engine

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"

	"snowglobe.test/scenarios/script"
)

// Branch calls a function that may return many times, each time in another process, with a script
// whose commands before the current line are those of this script. The run goes on with that, in a
// folder that is as it is now but for the files of the other script. Branch returns the words that the
// other script has on the current line, none if the function returned false: then the run ends here.
func (r *Run) Branch(next func() (script.Script, bool)) (words []string, err error) {
	var files bytes.Buffer
	archive := zip.NewWriter(&files)
	folder := r.shell.state.Getwd()
	if err := archive.AddFS(os.DirFS(folder)); err != nil {
		return nil, fmt.Errorf("read the folder of the run: %w", err)
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	other, ok := next()
	if !ok {
		r.ended = true
		return nil, nil
	}
	r.Script = other
	if err := r.refill(folder, files.Bytes()); err != nil {
		return nil, fmt.Errorf("folder of the run: %w", err)
	}
	line, err := script.ParseLine(other.Lines()[r.line.Number-1])
	return line.Words, err
}

// refill makes the folder of the run what an archive says, with the files of the script.
func (r *Run) refill(folder string, archive []byte) error {
	kept, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	if err := os.CopyFS(folder, kept); err != nil {
		return err
	}
	return r.shell.write(r.Script)
}
