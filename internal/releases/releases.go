package releases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/mod/semver"
)

// Folder holds releases, each in a folder with the name of its version.
type Folder string

// InCache is the folder in the user's cache folder.
func InCache() (Folder, error) {
	cache, err := os.UserCacheDir()
	return Folder(filepath.Join(cache, "snowglobe", "releases")), err
}

// Release is a kube-apiserver that was built.
type Release struct {
	Version string    `json:"version"` // such as v1.36.3
	Program string    `json:"program"` // its path
	Bytes   int64     `json:"bytes"`
	Built   time.Time `json:"built"`
}

const apiServer = "kube-apiserver"

func (f Folder) program(version string) string {
	path := filepath.Join(string(f), version, apiServer)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	return path
}

// List lists the releases, the newest first.
func (f Folder) List() ([]Release, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var releases []Release
	for _, entry := range entries {
		if !semver.IsValid(entry.Name()) {
			continue
		}
		info, err := os.Stat(f.program(entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		releases = append(releases, Release{entry.Name(), f.program(entry.Name()), info.Size(), info.ModTime()})
	}
	slices.SortFunc(releases, func(a, b Release) int { return semver.Compare(b.Version, a.Version) })
	return releases, nil
}

// Find finds the newest release that is wanted: a version such as 1.36.3, or the newest patch of
// 1.36. With and without a v they are the same. It is nil if there is none.
func (f Folder) Find(wanted string) (*Release, error) {
	if err := Check(wanted); err != nil {
		return nil, err
	}
	releases, err := f.List()
	for _, r := range releases {
		if matches(r.Version, wanted) {
			return &r, nil
		}
	}
	return nil, err
}

// Check says whether something can be the name of a release.
func Check(wanted string) error {
	version := canonical(wanted)
	if !semver.IsValid(version) || strings.Count(version, ".") == 0 || semver.Build(version) != "" {
		return fmt.Errorf("%q is not a release of Kubernetes; give one like 1.36, or 1.36.3", wanted)
	}
	return nil
}

// canonical has a v.
func canonical(version string) string { return "v" + strings.TrimPrefix(version, "v") }

// matches reports whether a version is the one that is wanted, or a patch of it.
func matches(version, wanted string) bool {
	wanted = canonical(wanted)
	if strings.Count(wanted, ".") == 1 {
		return semver.MajorMinor(version) == wanted && semver.Prerelease(version) == ""
	}
	return version == wanted
}

// Remove removes a release.
func (f Folder) Remove(r *Release) error { return os.RemoveAll(filepath.Dir(r.Program)) }

// Build builds the newest release that is wanted and that there are modules of, unless it is there.
// progress is told how far it is, which takes some minutes.
func (f Folder) Build(ctx context.Context, wanted string, progress io.Writer) (*Release, error) {
	if err := Check(wanted); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, err
	}
	unlock, err := f.lock(ctx, progress)
	if err != nil {
		return nil, err
	}
	defer unlock()
	module, err := f.building()
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(module) }()
	version, err := resolve(ctx, module, wanted)
	if err != nil {
		return nil, err
	}
	if there, err := f.Find(version); there != nil || err != nil {
		return there, err
	}
	program, err := build(ctx, module, version, progress)
	if err != nil {
		return nil, fmt.Errorf("build %s %s: %w", apiServer, version, err)
	}
	if err := os.MkdirAll(filepath.Dir(f.program(version)), 0o700); err != nil {
		return nil, err
	}
	if err := os.Rename(program, f.program(version)); err != nil {
		return nil, err
	}
	return f.Find(version)
}

// lock lets one process build at a time.
func (f Folder) lock(ctx context.Context, progress io.Writer) (unlock func(), err error) {
	lock := flock.New(string(f) + ".lock")
	locked, err := lock.TryLock()
	if err == nil && !locked {
		fmt.Fprintln(progress, "snowglobe: another process builds a release; waiting for it")
		_, err = lock.TryLockContext(ctx, lockInterval)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", f, err)
	}
	return func() { _ = lock.Unlock() }, nil
}

// lockInterval is the time between two attempts to lock.
const lockInterval = 200 * time.Millisecond

// building makes the folder of a build, and removes what is left of those that were killed.
func (f Folder) building() (string, error) {
	left, err := filepath.Glob(filepath.Join(string(f), "building*"))
	for _, folder := range left {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	module := filepath.Join(string(f), "building")
	return module, errors.Join(err, os.Mkdir(module, 0o700))
}

// newest is the newest of versions that is wanted, "" for none.
func newest(versions []string, wanted string) string {
	found := ""
	for _, version := range versions {
		if matches(version, wanted) && (found == "" || semver.Compare(version, found) > 0) {
			found = version
		}
	}
	return found
}

// minors are the newest patches of each minor, the newest first.
func minors(versions []string) []string {
	latest := map[string]string{}
	for _, version := range versions {
		minor := semver.MajorMinor(version)
		if semver.Prerelease(version) == "" && semver.Compare(version, cmp.Or(latest[minor], minor)) >= 0 {
			latest[minor] = version
		}
	}
	var all []string
	for _, version := range latest {
		all = append(all, version)
	}
	semver.Sort(all)
	slices.Reverse(all)
	return all
}
