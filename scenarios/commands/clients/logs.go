package clients

import (
	"bufio"
	"context"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/story"
)

func (c *Clients) Logs() engine.Command {
	return engine.Command{
		Name:    "logs",
		Args:    "[-n NAMESPACE] [-c CONTAINER] NAME POD",
		Asserts: true,
		Summary: "follow the log of a pod in the background, under a given name",
		Details: `"next" and "drain" take its lines, and END when there are no more, for whatever
reason. "unwatch" stops following it.`,
		Example: "logs web web-0\nnext web LINE 'it snows'\nnext web END",
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			namespace := NamespaceFlag(flags)
			container := flags.StringP("container", "c", "", "")
			return func(_ context.Context, args []string) error {
				return c.followLog(args[0], *namespace, args[1], *container)
			}
		},
	}
}

func (c *Clients) followLog(name, namespace, pod, container string) error {
	return c.Begin(name, func(ctx context.Context, s *Stream) error {
		client, err := c.Typed(story.ScriptAgent)
		if err != nil {
			return err
		}
		log, err := client.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
		if err != nil {
			return err
		}
		s.Go(func() {
			defer func() { _ = log.Close() }()
			lines := bufio.NewScanner(log)
			for lines.Scan() {
				s.Add(Event{Kind: Line, Line: lines.Text()})
			}
			s.Add(Event{Kind: End})
		})
		return nil
	})
}
