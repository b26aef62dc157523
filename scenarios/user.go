package scenarios

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
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

// tokenVariable is the variable that holds the last token.
const tokenVariable = "TOKEN"

var tokenCommand = command{
	name:  "token",
	args:  "[--duration DURATION] [NAMESPACE/]SERVICEACCOUNT",
	least: 1, most: 1,
	summary: "request a token for a service account and put it into $TOKEN",
	details: `It prints when the token expires. The server grants no less than ten minutes; if
no duration is asked for, it grants an hour.`,
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
	fmt.Fprintf(s.ts.Stdout(), "expires %s\n", granted.Status.ExpirationTimestamp.UTC().Format(time.RFC3339))
	return nil
}

var whoamiCommand = command{
	name:    "whoami",
	summary: "print the user that the server authenticates the script as",
	details: `It fails if the server rejects the script's credentials.`,
	example: "whoami\nstdout system:serviceaccount:default:robot",
	run: func(ctx context.Context, s *session, args []string) error {
		client, err := s.kube()
		if err != nil {
			return err
		}
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		fmt.Fprintln(s.ts.Stdout(), review.Status.UserInfo.Username)
		return nil
	},
}

// kube returns a typed client for the script's own requests.
func (s *session) kube() (kubernetes.Interface, error) {
	config, err := s.config(scriptAgent)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
