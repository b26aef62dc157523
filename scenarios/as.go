package scenarios

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

var asCommand = command{
	name:  "as",
	args:  "admin | anonymous | user NAME [GROUP...] | certificate DURATION NAME [GROUP...] | token TOKEN",
	least: 1, most: anyNumber,
	summary: "choose the user for the requests that follow",
	details: `A user may do what RBAC allows; the admin may do everything; anonymous sends no
credentials. A certificate is a new client certificate that is valid from now on, for
DURATION. A token is a bearer token, such as the one "token" requests. After a start, the
user is the admin again.`,
	example:    "as user mallory developers\nas certificate 1h mallory developers\nas token $TOKEN",
	noNegation: true,
	onServer:   true,
	run: func(_ context.Context, s *session, args []string) error {
		switch {
		case len(args) == 1 && (args[0] == "admin" || args[0] == "anonymous"),
			len(args) >= 2 && args[0] == "user",
			len(args) >= 3 && args[0] == "certificate",
			len(args) == 2 && args[0] == "token":
			s.user = args
			return s.identify()
		}
		return errUsage
	},
}

// identify makes the configuration for the user and the path that were chosen.
func (s *session) identify() error {
	var path requestPath = s.server
	if s.via != nil {
		path = s.via
	}
	switch s.user[0] {
	case "admin":
		s.identity = path.Config()
	case "anonymous":
		s.identity = path.Config()
		s.identity.BearerToken = ""
	case "user":
		s.identity = path.AddUser(s.user[1], s.user[2:]...)
	case "certificate":
		validity, err := time.ParseDuration(s.user[1])
		if err != nil || validity <= 0 {
			return fmt.Errorf("%w: %q is not a duration like 1h", errUsage, s.user[1])
		}
		identity, err := path.AddCertificate(validity, s.user[2], s.user[3:]...)
		if err != nil {
			return err
		}
		s.identity = identity
	case "token":
		s.identity = path.Config()
		s.identity.BearerToken = s.user[1]
	default:
		return fmt.Errorf("%w: no user is %q", errUsage, s.user)
	}
	return nil
}

// requestPath is the way of requests to API servers.
type requestPath interface {
	Config() *rest.Config
	AddUser(name string, groups ...string) *rest.Config
	AddCertificate(validity time.Duration, name string, groups ...string) (*rest.Config, error)
}
