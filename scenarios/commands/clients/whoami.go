package clients

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/story"
)

func (c *Clients) Whoami() engine.Command {
	return engine.Command{
		Name:    "whoami",
		Asserts: true,
		Summary: "print the user that the server authenticates the script as",
		Details: `It fails if the server rejects the script's credentials.`,
		Example: "whoami\nstdout system:serviceaccount:default:robot",
		Run: func(ctx context.Context, args []string) error {
			client, err := c.Typed(story.ScriptAgent)
			if err != nil {
				return err
			}
			review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			fmt.Fprintln(&c.run.Stdout, review.Status.UserInfo.Username)
			return nil
		},
	}
}
