package scenarios

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tokenVariable is the variable that holds the last token.
const tokenVariable = "TOKEN"

var tokenCommand = command{
	name:  "token",
	args:  "[--duration DURATION] [NAMESPACE/]SERVICEACCOUNT",
	least: 1, most: 1,
	summary: "request a token for a service account and put it into $TOKEN",
	details: `It prints when the token expires. The server grants at least ten minutes; if
no duration is requested, it grants an hour.`,
	example: "token --duration 10m robot\nas token $TOKEN",
	prepare: func(flags *pflag.FlagSet) action {
		duration := flags.Duration("duration", 0, "")
		return func(ctx context.Context, s *session, args []string) error {
			namespace, name, ok := strings.Cut(args[0], "/")
			if !ok {
				namespace, name = defaultNamespace, args[0]
			}
			return s.requestToken(ctx, namespace, name, *duration)
		}
	},
}

func (s *session) requestToken(ctx context.Context, namespace, name string, duration time.Duration) error {
	client, err := s.kube()
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
	s.ts.Setenv(tokenVariable, granted.Status.Token)
	fmt.Fprintf(&s.out, "expires %s\n", granted.Status.ExpirationTimestamp.UTC().Format(time.RFC3339))
	return nil
}
