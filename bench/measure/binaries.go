package measure

import (
	"context"
	"errors"
	"fmt"
	"io"

	"snowglobe.test/internal/stock"
	"snowglobe.test/internal/tempdir"
)

// Binaries are what controller-runtime's envtest runs, and what measurements compare with.
type Binaries struct {
	Folder    string `json:"folder"`    // absolute
	APIServer string `json:"apiserver"` // what kube-apiserver --version prints
	Etcd      string `json:"etcd"`      // what etcd --version prints
}

// FindBinaries checks for all binaries in a folder before anything is measured.
func FindBinaries(ctx context.Context, folder string) (Binaries, error) {
	programs, err := stock.Find(ctx, folder)
	return Binaries(programs), err
}

// AgainstStock, in place of a folder, means binaries that are built from what the module of the
// current folder requires. It has to require Kubernetes.
const AgainstStock = "stock"

// WithBinaries calls f with the binaries of a folder, or with new ones that are gone afterwards.
func WithBinaries(ctx context.Context, against string, progress io.Writer, f func(Binaries) error) (err error) {
	if against != AgainstStock {
		binaries, err := FindBinaries(ctx, against)
		if err != nil {
			return fmt.Errorf("compare with the binaries in %s: %w", against, err)
		}
		return f(binaries)
	}
	folder, err := tempdir.Make("bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	programs, err := stock.Build(ctx, folder.Path(), progress)
	if err != nil {
		return err
	}
	return f(Binaries(programs))
}
