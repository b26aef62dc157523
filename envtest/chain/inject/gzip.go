package inject

import (
	"bytes"
	"compress/gzip"
	"io"
)

// gzipMembers collects the members of a compressed watch. Upstream ends one with
// each flush, so that it has whole frames in it.
type gzipMembers struct {
	on      bool
	member  []byte
	passing bool // the beginning of the member was not kept
}

// keeps takes a part of a member, if it was wanted from the beginning.
func (g *gzipMembers) keeps(p []byte, wanted bool) bool {
	if g.passing || len(g.member) == 0 && !wanted {
		g.passing = true
		return false
	}
	g.member = append(g.member, p...)
	return true
}

// end returns what is in the member, nothing if it was not kept.
func (g *gzipMembers) end() ([]byte, error) {
	member := g.member
	g.member, g.passing = nil, false
	if member == nil {
		return nil, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(member))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// compressed is a member of its own. As upstream's it is flushed before it ends,
// because a reader that has found the end of a member waits for the next one
// before it hands on what it has.
func compressed(p []byte) []byte {
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	_, _ = w.Write(p) // to memory, which takes everything
	_ = w.Flush()
	_ = w.Close()
	return member.Bytes()
}
