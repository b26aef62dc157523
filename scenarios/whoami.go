package scenarios

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func whoamiCommand() command {
	return command{
		name:    "whoami",
		summary: "print the user that the server authenticates the script as",
		details: `It fails if the server rejects the script's credentials.`,
		example: "whoami\nstdout system:serviceaccount:default:robot",
		prepare: plain(func(ctx context.Context, s *session, args []string) error {
			if len(args) > 0 {
				return errUsage
			}
			config, err := s.config(scriptAgent)
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			fmt.Fprintln(s.ts.Stdout(), review.Status.UserInfo.Username)
			return nil
		}),
	}
}
