package scenarios

import (
	"context"
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
		case len(args) == 1 && args[0] == "admin":
			s.identity = s.server.Config()
		case len(args) >= 2 && args[0] == "user":
			s.identity = s.server.AddUser(args[1], args[2:]...)
		case len(args) == 2 && args[0] == "token":
			s.identity = s.server.Config()
			s.identity.BearerToken = args[1]
		default:
			return errUsage
		}
		return nil
	},
}
