package scenarios

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
		fmt.Fprintln(&s.out, review.Status.UserInfo.Username)
		return nil
	},
}
