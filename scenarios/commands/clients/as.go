package clients

import (
	"context"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest"
	"snowglobe.test/scenarios/commands/servers"
	"snowglobe.test/scenarios/engine"
)

func (c *Clients) As() engine.Command {
	return engine.Command{
		Name:    "as",
		Args:    "admin | anonymous | user NAME [GROUP...] | certificate DURATION NAME [GROUP...] | token TOKEN",
		Summary: "choose the user for the requests that follow",
		Details: `A user may do what RBAC allows; the admin may do everything; anonymous sends no
credentials. A certificate is a new client certificate that is valid from now on, for
DURATION. A token is a bearer token, such as the one "create-token" requests. After a start, the
user is the admin again.`,
		Example:    "as user mallory developers\nas certificate 1h mallory developers\nas token $TOKEN",
		NoNegation: true,
		Needs:      c.servers.Running,
		Static:     func(_ *pflag.FlagSet, args []string) error { return checkUser(args) },
		Run: func(_ context.Context, args []string) error {
			c.user = args
			c.identify()
			return nil
		},
	}
}

// checkUser refuses what names no user.
func checkUser(args []string) error {
	switch {
	case len(args) == 1 && (args[0] == "admin" || args[0] == "anonymous"),
		len(args) >= 2 && args[0] == "user",
		len(args) == 2 && args[0] == "token":
		return nil
	case len(args) >= 3 && args[0] == "certificate":
		_, err := servers.PositiveDuration(args[1], "1h")
		return err
	}
	return engine.ErrUsage
}

// identify makes the configuration for the user and the path that were chosen.
func (c *Clients) identify() {
	config := c.servers.ControlPlane().Config
	if c.via != nil {
		config = c.via.Config
	}
	switch c.user[0] {
	case "admin":
		c.identity = config()
	case "anonymous":
		c.identity = config()
		c.identity.BearerToken = ""
	case "user":
		c.identity = config(envtest.User(c.user[1], c.user[2:]...))
	case "certificate":
		validity, _ := servers.PositiveDuration(c.user[1], "1h")
		c.identity = config(envtest.User(c.user[2], c.user[3:]...), envtest.Certificate(validity))
	case "token":
		c.identity = config()
		c.identity.BearerToken = c.user[1]
	}
}
