package release

import (
	"context"
	_ "embed"
	"regexp"
	"slices"
	"strings"

	"snowglobe.test/conformance/suite"
)

var flagCases = suite.Launching([]suite.Case{
	{ID: "S3/flags-are-those-of-the-release", Test: flagsAreThoseOfTheRelease,
		Source: "k8s.io/kubernetes/cmd/kube-apiserver/app/options/options.go, Flags; KEP-4828; " +
			"k8s.io/apiserver/pkg/server/flagz/flagz.go",
		Promise: "/flagz lists every flag of the release, with its default where it was not given."},
})

//go:embed kept/flags.txt
var keptFlags string

// given are the flags that a server here is started with, or that follow from its addresses and its
// store.
var given = regexp.MustCompile(`^(advertise-address|allow-privileged|authorization-mode|bind-address|` +
	`disable-admission-plugins|` +
	`endpoint-reconciler-type|etcd-compaction-interval|etcd-servers|external-hostname|service-account-issuer|` +
	`service-cluster-ip-range|watch-cache-sizes)$`)

// ungiven leaves out the lines of flags that were given.
func ungiven(flags []string) []string {
	return slices.DeleteFunc(flags, func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return given.MatchString(name)
	})
}

func flagsAreThoseOfTheRelease(ctx context.Context, beside *suite.T) {
	t := plain(ctx, beside)
	type flagz struct {
		Flags map[string]string `json:"flags"`
	}
	page := suite.JSON[flagz](t, t.Ask(ctx, suite.Request{Path: "/flagz",
		Accept: "application/json;v=v1beta1;g=config.k8s.io;as=Flagz"}))
	var found []string
	for name, value := range page.Flags {
		found = append(found, name+"="+value)
	}
	expectSame(t, ungiven(lines(keptFlags)), ungiven(found), "flags")
}
