package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"snowglobe.test/internal/diskerr"
)

// segmentsEach is what an etcd takes for its log in advance: the segment that it writes, and
// the next.
const segmentsEach = 2

// Check refuses a folder whose disk has no room for so many etcds to begin with. They would
// fail in the middle of their start, or of the first write that needs the next segment.
func Check(folder string, etcds int) error {
	segments := etcds * segmentsEach
	if wal.Exist(filepath.Join(folder, "member", "wal")) {
		segments-- // it is there
	}
	err := allocate(folder, segments)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk of %q has no room for an etcd, which needs %d MB to start%s: free some space there, or use another folder",
			folder, int64(segments)*wal.SegmentSizeBytes/1_000_000, diskerr.Free(folder))
	}
	if err != nil {
		return explain(folder, err)
	}
	return nil
}

// allocate takes the space of some segments, and gives it back.
func allocate(folder string, segments int) (err error) {
	for range segments {
		probe, createErr := os.CreateTemp(folder, "space-")
		if createErr != nil {
			return createErr
		}
		defer func() { err = errors.Join(err, probe.Close(), os.Remove(probe.Name())) }()
		if err := fileutil.Preallocate(probe, wal.SegmentSizeBytes, true); err != nil {
			return err
		}
	}
	return nil
}
