package main

import (
	"context"
	"io"

	"snowglobe.test/conformance/mutants/workshop"
)

// opened is the program to work with, which no other process changes until it is closed.
type opened struct {
	root     string
	built    workshop.Built
	workshop *workshop.Workshop
}

// open builds the program, unless the last one will do as it is.
func open(ctx context.Context, last bool, progress io.Writer) (*opened, error) {
	root, err := workshop.Root(ctx)
	if err != nil {
		return nil, err
	}
	w, err := workshop.Open(ctx, root, progress)
	if err != nil {
		return nil, err
	}
	b := &opened{root: root, workshop: w}
	if last {
		b.built, err = w.Last()
	} else {
		b.built, err = w.Build(ctx, progress)
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// close unlocks the folder, as the end of the process would.
func (b *opened) close() { _ = b.workshop.Close() }
