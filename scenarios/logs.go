package scenarios

import (
	"bufio"
	"context"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const lineEvent watch.EventType = "LINE"

var logsCommand = command{
	name:  "logs",
	args:  "[-n NAMESPACE] [-c CONTAINER] NAME POD",
	least: 2, most: 2,
	summary: "follow the log of a pod in the background, under a given name",
	details: `"event" and "events" take its lines, and END when there are no more, for whatever
reason. "unwatch" stops following it.`,
	example: "logs web web-0\nevent web LINE 'it snows'\nevent web END",
	prepare: func(flags *pflag.FlagSet) action {
		namespace := namespaceFlag(flags)
		container := flags.StringP("container", "c", "", "")
		return func(_ context.Context, s *session, args []string) error {
			return s.followLog(args[0], *namespace, args[1], *container)
		}
	},
}

func (s *session) followLog(name, namespace, pod, container string) error {
	if err := s.free(name); err != nil {
		return err
	}
	client, err := s.kube()
	if err != nil {
		return err
	}
	ctx, cancel := s.background()
	log, err := client.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		cancel()
		return err
	}
	begun := newStream(cancel)
	begun.running.Go(func() {
		defer func() { _ = log.Close() }()
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			begun.add(streamEvent{kind: lineEvent, line: lines.Text()})
		}
		begun.add(streamEvent{kind: endEvent})
	})
	s.streams[name] = begun
	return nil
}
