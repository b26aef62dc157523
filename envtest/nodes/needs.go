package nodes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// Pauses between two looks at what a Pod needs, as a kubelet makes them for volumes.
const (
	firstLook = 500 * time.Millisecond
	maxLook   = 2*time.Minute + 2*time.Second
)

// need is a Secret or ConfigMap without which a kubelet starts no container.
type need struct {
	kind   string // "secret" or "configmap"
	name   string
	keys   []string
	volume string // or empty, for the environment of a container
}

// awaitNeeds waits until all that the Pod needs is there. It is not ready if the Pod is gone, or
// lives ends.
func (p *player) awaitNeeds(ctx, lives context.Context) (ready, gone bool) {
	told := ""
	for pause := firstLook; ; pause = min(2*pause, maxLook) {
		reason, message := p.missing(lives)
		if lives.Err() != nil {
			return false, false
		}
		if message == "" {
			return true, false
		}
		if message != told && p.tell(ctx, progress{at: starting, reason: reason, message: message}) {
			return false, true
		}
		told = message
		if !sleep(lives, pause) {
			return false, false
		}
	}
}

// missing says, in a kubelet's words, what is not there yet, or else nothing.
func (p *player) missing(ctx context.Context) (reason, message string) {
	for _, need := range needs(&p.pod.Spec) {
		keys, err := p.keys(ctx, need)
		if err == nil {
			err = need.lacks(p.pod.Namespace, keys)
		}
		switch {
		case err == nil:
		case need.volume != "":
			return "ContainerCreating", fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", need.volume, err)
		default:
			return "CreateContainerConfigError", err.Error()
		}
	}
	return "", ""
}

// keys are those that the object of a need has.
func (p *player) keys(ctx context.Context, need need) (sets.Set[string], error) {
	if need.kind == "secret" {
		secret, err := p.client.CoreV1().Secrets(p.pod.Namespace).Get(ctx, need.name, metav1.GetOptions{})
		if err != nil {
			return nil, absent(need, err)
		}
		return sets.KeySet(secret.Data), nil
	}
	config, err := p.client.CoreV1().ConfigMaps(p.pod.Namespace).Get(ctx, need.name, metav1.GetOptions{})
	if err != nil {
		return nil, absent(need, err)
	}
	return sets.KeySet(config.Data).Union(sets.KeySet(config.BinaryData)), nil
}

func absent(need need, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %q not found", need.kind, need.name)
	}
	return err
}

// lacks returns an error if a key is not there.
func (n need) lacks(namespace string, keys sets.Set[string]) error {
	for _, key := range n.keys {
		switch {
		case keys.Has(key):
		case n.volume != "":
			return fmt.Errorf("references non-existent %s key: %s", n.kind, key)
		default:
			return fmt.Errorf("couldn't find key %s in %s %s/%s", key, n.kind, namespace, n.name)
		}
	}
	return nil
}

// needs are the Secrets and ConfigMaps of a Pod's volumes and environments but optional ones.
func needs(spec *corev1.PodSpec) []need {
	var all []need
	add := func(optional *bool, need need) {
		if !ptr.Deref(optional, false) {
			all = append(all, need)
		}
	}
	for _, v := range spec.Volumes {
		if s := v.Secret; s != nil {
			add(s.Optional, need{"secret", s.SecretName, paths(s.Items), v.Name})
		}
		if c := v.ConfigMap; c != nil {
			add(c.Optional, need{"configmap", c.Name, paths(c.Items), v.Name})
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if s := source.Secret; s != nil {
				add(s.Optional, need{"secret", s.Name, paths(s.Items), v.Name})
			}
			if c := source.ConfigMap; c != nil {
				add(c.Optional, need{"configmap", c.Name, paths(c.Items), v.Name})
			}
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, container := range containers {
			addEnvironment(&container, add)
		}
	}
	return all
}

func addEnvironment(container *corev1.Container, add func(*bool, need)) {
	for _, from := range container.EnvFrom {
		if s := from.SecretRef; s != nil {
			add(s.Optional, need{kind: "secret", name: s.Name})
		}
		if c := from.ConfigMapRef; c != nil {
			add(c.Optional, need{kind: "configmap", name: c.Name})
		}
	}
	for _, env := range container.Env {
		if env.ValueFrom == nil {
			continue
		}
		if s := env.ValueFrom.SecretKeyRef; s != nil {
			add(s.Optional, need{kind: "secret", name: s.Name, keys: []string{s.Key}})
		}
		if c := env.ValueFrom.ConfigMapKeyRef; c != nil {
			add(c.Optional, need{kind: "configmap", name: c.Name, keys: []string{c.Key}})
		}
	}
}

func paths(items []corev1.KeyToPath) []string {
	keys := make([]string, len(items))
	for i, item := range items {
		keys[i] = item.Key
	}
	return keys
}
