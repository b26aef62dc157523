package aggregated

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Config says what a server serves.
type Config struct {
	// Resources are served in the order of the table: the first version of a group is
	// the preferred one. There must be one at least. Versions of a resource have the
	// same objects.
	Resources []Resource
	// Hosts are the DNS names and IPs that the serving certificate is for, such as
	// "api.default.svc". Empty means localhost, 127.0.0.1 and ::1.
	Hosts []string
	// FrontProxyCA is the certificate, in PEM, of the authority that the aggregator is
	// signed by. Others are answered 401. Empty lets everybody in.
	FrontProxyCA []byte
	// FrontProxyNames are the common names that the aggregator's certificate may have. Empty
	// means any name. Others are answered 401.
	FrontProxyNames []string
	// BookmarkInterval is how often a watch that wants bookmarks gets one. 0 means
	// every minute.
	BookmarkInterval time.Duration
}

// Resource is a resource of one group and version.
type Resource struct {
	Group, Version string
	Plural         string // such as "widgets"
	Singular       string // empty means Kind in lower case
	Kind           string
	Namespaced     bool
	ShortNames     []string
	Categories     []string
	// Status says that there is a status subresource.
	Status bool
	// Columns are those of tables besides name and age.
	Columns []Column
}

// Column is a column of a table.
type Column struct {
	metav1.TableColumnDefinition
	// Cell is what the column has for an object: a string, number, bool or nil.
	Cell func(*unstructured.Unstructured) any
}

func (r *Resource) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

func (r *Resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

func (r *Resource) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

func (r *Resource) singular() string { return cmp.Or(r.Singular, strings.ToLower(r.Kind)) }

// verbs are those of the resource, in the order in which discovery lists them.
func (r *Resource) verbs() []string {
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

// validate returns what is wrong, with the place in the table.
func (c *Config) validate() error {
	if len(c.Resources) == 0 {
		return errors.New("there are no Resources: list one at least")
	}
	if len(c.FrontProxyNames) > 0 && len(c.FrontProxyCA) == 0 {
		return errors.New("FrontProxyNames are no protection without FrontProxyCA: give both")
	}
	if c.BookmarkInterval < 0 {
		return fmt.Errorf("BookmarkInterval is %s: it must not be negative", c.BookmarkInterval)
	}
	for i, r := range c.Resources {
		switch {
		case r.Group == "" || r.Version == "" || r.Plural == "" || r.Kind == "":
			return fmt.Errorf("Resources[%d]: group %q, version %q, plural %q and kind %q: none of them may be empty", i, r.Group, r.Version, r.Plural, r.Kind)
		case r.Plural != strings.ToLower(r.Plural):
			return fmt.Errorf("Resources[%d]: plural %q: it must be in lower case", i, r.Plural)
		}
		for j, other := range c.Resources[:i] {
			if r.Group != other.Group || r.Plural != other.Plural {
				continue
			}
			if r.Version == other.Version {
				return fmt.Errorf("Resources[%d]: %s of %s are in Resources[%d] already", i, r.Plural, r.groupVersion(), j)
			}
			if r.Kind != other.Kind || r.Namespaced != other.Namespaced {
				return fmt.Errorf("Resources[%d]: %s of group %s differ in kind or scope from those in Resources[%d], whose objects they are", i, r.Plural, r.Group, j)
			}
		}
		if j := slices.IndexFunc(r.Columns, func(c Column) bool { return c.Name == "" || c.Cell == nil }); j >= 0 {
			return fmt.Errorf("Resources[%d].Columns[%d]: it needs a Name and a Cell", i, j)
		}
	}
	return nil
}
