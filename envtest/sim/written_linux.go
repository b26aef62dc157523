//go:build snowglobesim && (amd64 || arm64) && !cgo

package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// written is a file in which the first copy that ends says which memory it has written, as pairs of
// addresses. Those that follow write much the same memory: they have it copied at their start, range by
// range, which is several times faster than a page fault for each page. Linux before 5.14 can't do that,
// and nothing is copied ahead. If, for example, of four pages the first two and the last were written,
// the file holds 0x1000 0x3000 0x4000 0x5000.
type written int

// The bits of a page in /proc/self/pagemap.
const (
	presentPage   = 1 << 63
	exclusivePage = 1 << 56 // no other process has it: the copy has written it
)

func newWritten() written {
	fd, err := unix.MemfdCreate("written", unix.MFD_CLOEXEC)
	if err != nil {
		return -1 // without, copies are slower and no worse
	}
	return written(fd)
}

// take has the memory copied that another copy has written.
func (w written) take() {
	ranges := make([]byte, w.size())
	if n, err := unix.Pread(int(w), ranges, 0); err != nil || n < len(ranges) {
		return
	}
	for ; len(ranges) > 0; ranges = ranges[16:] {
		from, to := binary.NativeEndian.Uint64(ranges), binary.NativeEndian.Uint64(ranges[8:])
		_, _, _ = unix.RawSyscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_POPULATE_WRITE)
	}
}

func (w written) size() int64 {
	var stat unix.Stat_t
	_ = unix.Fstat(int(w), &stat)
	return stat.Size
}

// tell says what this copy has written, unless another has told before.
func (w written) tell() {
	if w.size() > 0 {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	pages, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return
	}
	defer func() { _ = pages.Close() }()
	var ranges []byte
	for line := range bytes.Lines(maps) {
		var from, to uint64
		var access string
		if _, err := fmt.Sscanf(string(line), "%x-%x %s", &from, &to, &access); err == nil && access == "rw-p" {
			ranges = appendWritten(ranges, pages, from, to)
		}
	}
	_, _ = unix.Pwrite(int(w), ranges, 0)
}

// appendWritten adds the ranges that were written between two addresses.
func appendWritten(ranges []byte, pages *os.File, from, to uint64) []byte {
	size := uint64(os.Getpagesize())
	all := make([]uint64, (to-from)/size)
	if len(all) == 0 {
		return ranges
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&all[0])), len(all)*8)
	if _, err := pages.ReadAt(raw, int64(from/size*8)); err != nil {
		return ranges
	}
	const copied = presentPage | exclusivePage
	for i, page := range all {
		at := from + uint64(i)*size
		if is, was := page&copied == copied, i > 0 && all[i-1]&copied == copied; is != was {
			ranges = binary.NativeEndian.AppendUint64(ranges, at)
		}
	}
	if all[len(all)-1]&copied == copied {
		ranges = binary.NativeEndian.AppendUint64(ranges, to)
	}
	return ranges
}
