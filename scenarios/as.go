package scenarios

import (
	"context"
	"fmt"
)

var asCommand = command{
	name:  "as",
	args:  "admin | user NAME [GROUP...] | token TOKEN",
	least: 1, most: anyNumber,
	summary: "choose the user for the requests that follow",
	details: `A user may do what RBAC allows; the admin may do everything. A token is a bearer
token, such as "token" returns. After a start, the user is the admin again.`,
	example:    "as user mallory developers\nas token $TOKEN",
	noNegation: true,
	onServer:   true,
	run: func(_ context.Context, s *session, args []string) error {
		switch {
		case len(args) == 1 && args[0] == "admin",
			len(args) >= 2 && args[0] == "user",
			len(args) == 2 && args[0] == "token":
			s.user = args
			return s.identify()
		}
		return errUsage
	},
}

// identify makes the configuration for the user and the path that were chosen.
func (s *session) identify() error {
	config, addUser := s.server.Config, s.server.AddUser
	if s.via != nil {
		config, addUser = s.via.Config, s.via.AddUser
	}
	switch s.user[0] {
	case "admin":
		s.identity = config()
	case "user":
		s.identity = addUser(s.user[1], s.user[2:]...)
	case "token":
		s.identity = config()
		s.identity.BearerToken = s.user[1]
	default:
		return fmt.Errorf("%w: no user is %q", errUsage, s.user)
	}
	return nil
}
