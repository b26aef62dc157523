package clients

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/story"
)

// tokenVariable is the variable that holds the last token.
const tokenVariable = "TOKEN"

func (c *Clients) CreateToken() engine.Command {
	return engine.Command{
		Name:     "create-token",
		Formerly: "token",
		Args:     "[--duration DURATION] [NAMESPACE/]SERVICEACCOUNT",
		Asserts:  true,
		Summary:  "request a token for a service account and put it into $TOKEN",
		Details: `It prints when the token expires. The server grants at least ten minutes; if
no duration is requested, it grants an hour.`,
		Example: "create-token --duration 10m robot\nas token $TOKEN",
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			duration := flags.Duration("duration", 0, "")
			return func(ctx context.Context, args []string) error {
				namespace, name, ok := strings.Cut(args[0], "/")
				if !ok {
					namespace, name = DefaultNamespace, args[0]
				}
				return c.createToken(ctx, namespace, name, *duration)
			}
		},
	}
}

func (c *Clients) createToken(ctx context.Context, namespace, name string, duration time.Duration) error {
	client, err := c.Typed(story.ScriptAgent)
	if err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{}
	if duration != 0 {
		request.Spec.ExpirationSeconds = new(int64(duration.Seconds()))
	}
	granted, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	c.run.Setenv(tokenVariable, granted.Status.Token)
	fmt.Fprintf(&c.run.Stdout, "expires %s\n", granted.Status.ExpirationTimestamp.UTC().Format(time.RFC3339))
	return nil
}
