package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// lockName is the file in a data folder whose lock its user holds. It says who that is.
const lockName = "snowglobe.lock"

// Lock is the use of a data folder by one etcd. A nil one locks nothing.
type Lock struct{ ours *flock.Flock }

// Use makes a data folder if there is none, and locks it. It never waits: the error says who
// uses the folder. A lock that a dead process has left behind does not count.
func Use(folder string) (*Lock, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, explain(folder, err)
	}
	path := filepath.Join(folder, lockName)
	ours := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR))
	locked, err := ours.TryLock()
	if err != nil {
		return nil, explain(folder, err)
	}
	if !locked {
		return nil, fmt.Errorf("data folder %q is in use by %s: stop that first, or use another folder", folder, owner(path))
	}
	lock := &Lock{ours}
	if err := foreign(folder); err != nil {
		lock.Release()
		return nil, err
	}
	if err := os.WriteFile(path, []byte(self()), 0o600); err != nil {
		lock.Release()
		return nil, explain(folder, err)
	}
	return lock, nil
}

// Release ends the use. The file stays: removing it would let two others lock different ones.
func (l *Lock) Release() {
	if l != nil {
		_ = l.ours.Close()
	}
}

// self is what the lock says of this process.
func self() string {
	command := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		command += " " + os.Args[1]
	}
	return fmt.Sprintf("process %d (%s)", os.Getpid(), command)
}

// owner is who holds the lock. A process that has just taken it may not have said so yet.
func owner(path string) string {
	text, err := os.ReadFile(path)
	switch {
	case err != nil || len(text) == 0:
		return "another process"
	case string(text) == self():
		return "this process already"
	}
	return strings.TrimSpace(string(text))
}

// foreign refuses a folder of which an etcd that knows nothing of our lock has the database
// open. Opening it too would wait for its lock without end.
func foreign(folder string) error {
	database := filepath.Join(folder, "member", "snap", "db")
	if _, err := os.Stat(database); os.IsNotExist(err) {
		return nil
	}
	theirs := flock.New(database, flock.SetFlag(os.O_RDWR))
	locked, err := theirs.TryLock()
	if err != nil {
		return explain(folder, err)
	}
	if !locked {
		return fmt.Errorf("data folder %q is in use by an etcd that is not Snowglobe's: stop that first, or use another folder", folder)
	}
	return theirs.Close()
}
