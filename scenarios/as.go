package scenarios

import (
	"context"

	"k8s.io/client-go/rest"
)

func asCommand() command {
	return command{
		name:    "as",
		args:    "admin | user NAME [GROUP...] | token TOKEN",
		summary: "choose the user for the requests that follow",
		details: `A user may do what RBAC allows; the admin may do everything. A token is a bearer
token, such as "token" returns. After a start, the user is the admin again.`,
		example:    "as user mallory developers\nas token $TOKEN",
		noNegation: true,
		prepare: plain(func(_ context.Context, s *session, args []string) error {
			server, err := s.running()
			switch {
			case err != nil:
				return err
			case len(args) == 1 && args[0] == "admin":
				s.identity = server.Config()
			case len(args) >= 2 && args[0] == "user":
				s.identity = server.AddUser(args[1], args[2:]...)
			case len(args) == 2 && args[0] == "token":
				s.identity = bearer(server.Config(), args[1])
			default:
				return errUsage
			}
			return nil
		}),
	}
}

// bearer sets the bearer token of a configuration.
func bearer(config *rest.Config, token string) *rest.Config {
	config.BearerToken = token
	return config
}
