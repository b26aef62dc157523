package diskerr_test

import (
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/internal/diskerr"
	"snowglobe.test/internal/pages"
)

func TestExplain(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: `no permission to write to "data": change that, or use another folder`,
		syscall.EFBIG:  `a file in "data" may not grow any further: raise the limit on file sizes (ulimit -f), or use another folder`,
		syscall.EIO:    `the disk of "data" fails: write data/db: input/output error`,
		syscall.EDQUOT: `the disk of "data" is full: free some space there, or use another folder`,
	} {
		err, ok := diskerr.Explain("data", &fs.PathError{Op: "write", Path: "data/db", Err: errno})
		assert.True(t, ok)
		assert.EqualError(t, err, want)
		pages.Troubleshooting(t, "../..", err.Error())
	}
	_, ok := diskerr.Explain("data", io.ErrUnexpectedEOF)
	assert.False(t, ok)
	assert.Equal(t, io.ErrUnexpectedEOF, diskerr.OrSame("data", io.ErrUnexpectedEOF))
}
