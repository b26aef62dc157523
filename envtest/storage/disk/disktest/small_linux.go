package disktest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

var disks = flag.Bool("disks", false, "run the tests that mount a small disk")

// childEnv names the test that a child process runs.
const childEnv = "SNOWGLOBE_DISKTEST"

// Small calls use with a disk of so many bytes, and with what makes it read-only. It skips the
// test without -disks, as not every machine lets everybody mount: only root may make a disk, but
// everybody is root in a namespace of their own, where the machine allows namespaces of users.
// The whole test is run in a child process there, and ends in this one. Call it first.
func Small(t *testing.T, bytes int, use func(dir string, readOnly func())) {
	t.Helper()
	if os.Getenv(childEnv) != t.Name() {
		if !*disks {
			t.Skip("it mounts a disk: run it with -disks")
		}
		inNamespace(t)
		return
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Fatalf("mount in a namespace: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	use(dir, func() {
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Fatalf("make the disk read-only: %v", err)
		}
	})
}

func inNamespace(t *testing.T) {
	t.Helper()
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	child := exec.Command(os.Args[0], "-test.run="+pattern, "-test.v", "-test.timeout=5m")
	child.Env = append(os.Environ(), childEnv+"="+t.Name())
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	var output strings.Builder
	child.Stdout, child.Stderr = &output, &output
	if err := child.Start(); err != nil {
		t.Fatalf("no disk of its own: this machine allows no namespaces of users: %v", err)
	}
	if err := child.Wait(); err != nil {
		t.Fatalf("on a disk of its own: %v\n%s", err, &output)
	}
	if !strings.Contains(output.String(), "--- PASS: "+t.Name()) {
		t.Fatalf("on a disk of its own the test did not run:\n%s", &output)
	}
	t.Log(output.String())
}
