package inject

import (
	"bytes"
	"compress/gzip"
	"io"
)

// gzipMembers collects the gzip members of a compressed watch. Upstream ends one
// with each flush, so that it has whole frames in it.
type gzipMembers struct {
	on      bool
	member  []byte
	passing bool // the beginning of the member was not kept
}

// keeps stores a part of a member, unless the member's beginning was not wanted.
func (g *gzipMembers) keeps(p []byte, wanted bool) bool {
	if g.passing || len(g.member) == 0 && !wanted {
		g.passing = true
		return false
	}
	g.member = append(g.member, p...)
	return true
}

// end returns the decompressed member, nothing if it was not kept.
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

// compressed returns p as one member, flushed before it ends, like upstream's:
// otherwise a reader waits for the next member before it returns p.
func compressed(p []byte) []byte {
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	_, _ = w.Write(p) // to memory, which takes everything
	_ = w.Flush()
	_ = w.Close()
	return member.Bytes()
}
