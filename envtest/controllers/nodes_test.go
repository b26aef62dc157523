package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllers"
	"snowglobe.test/envtest/kubectl"
	"snowglobe.test/envtest/linked"
	"snowglobe.test/envtest/nodes"
)

// simulateCluster has what "up --controllers --nodes 3" has.
func simulateCluster(t *testing.T, test func(ctx context.Context, c cluster)) {
	t.Helper()
	simulateWith(t, []envtest.Option{envtest.WithDialer(nodes.Dial)}, func(c cluster) {
		controllers.StartScheduler(c.T, c.cp)
		nodes.Start(c.T, c.cp.Config(), nodes.Config{Count: 3, Volumes: true})
		test(context.Background(), c)
	})
}

func (c cluster) create(manifest string) {
	c.Helper()
	create := kubectl.Cmd{Config: c.cp.Config(), Args: []string{"create", "-f", "-"}, Stdin: strings.NewReader(manifest), Stderr: c.Output()}
	require.NoError(c, create.Run(context.Background()))
}

// pod waits until a Pod is as a condition wants it.
func (c cluster) pod(name string, within time.Duration, is func(*corev1.Pod) bool) *corev1.Pod {
	c.Helper()
	var pod *corev1.Pod
	c.eventually(within, func() (bool, error) {
		var err error
		if pod, err = c.client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		return is(pod), fmt.Errorf("%s is %+v", name, pod.Status)
	})
	return pod
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// TestNodes looks at the nodes: addresses and versions of their own, and a lease that goes with
// its node.
func TestNodes(t *testing.T) {
	simulateCluster(t, func(ctx context.Context, c cluster) {
		list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		require.NoError(c, err)
		addresses := map[string]bool{}
		for _, node := range list.Items {
			addresses[node.Status.Addresses[0].Address] = true
			assert.Equal(c, linked.Release(), node.Status.NodeInfo.KubeletVersion)
			lease, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node.Name, metav1.GetOptions{})
			require.NoError(c, err)
			assert.Equal(c, node.UID, lease.OwnerReferences[0].UID)
		}
		assert.Len(c, addresses, 3)
		require.NoError(c, c.client.CoreV1().Nodes().Delete(ctx, "node-2", metav1.DeleteOptions{}))
		time.Sleep(2 * time.Minute)
		_, err = c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "node-2", metav1.GetOptions{})
		assert.True(c, apierrors.IsNotFound(err), "the lease of a node that is gone: %v", err)
	})
}

// TestPods has Pods of each kind that a kubelet treats in a way of its own.
func TestPods(t *testing.T) {
	simulateCluster(t, func(ctx context.Context, c cluster) {
		c.create(`
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: once}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: limited}, spec: {activeDeadlineSeconds: 60, containers: [{name: c, image: i}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: host}, spec: {hostNetwork: true, containers: [{name: c, image: i}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: gated}, spec: {readinessGates: [{conditionType: example.com/open}], containers: [{name: c, image: i}]}}
- apiVersion: v1
  kind: Pod
  metadata: {name: inits}
  spec:
    initContainers: [{name: first, image: i}, {name: sidecar, image: i, restartPolicy: Always}]
    containers: [{name: c, image: i}]
- apiVersion: v1
  kind: Pod
  metadata: {name: mounts}
  spec: {volumes: [{name: v, secret: {secretName: late}}], containers: [{name: c, image: i}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: reads}
  spec: {containers: [{name: c, image: i, env: [{name: E, valueFrom: {configMapKeyRef: {name: late, key: k}}}]}]}
`)
		once := c.pod("once", time.Minute, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
		host := c.pod("host", time.Minute, ready)
		assert.NotEqual(c, once.Status.ContainerStatuses[0].ContainerID, host.Status.ContainerStatuses[0].ContainerID)
		node, err := c.client.CoreV1().Nodes().Get(ctx, host.Spec.NodeName, metav1.GetOptions{})
		require.NoError(c, err)
		assert.Equal(c, node.Status.Addresses[0].Address, host.Status.PodIP)

		inits := c.pod("inits", time.Minute, ready).Status.InitContainerStatuses
		assert.Equal(c, "Completed", inits[0].State.Terminated.Reason)
		assert.NotNil(c, inits[1].State.Running)
		assert.True(c, inits[1].Ready && *inits[1].Started)

		limited := c.pod("limited", 2*time.Minute, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
		assert.Equal(c, "DeadlineExceeded", limited.Status.Reason)

		running := func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].State.Running != nil }
		gated := c.pod("gated", time.Minute, running)
		assert.False(c, ready(gated), "its gate is closed")
		_, err = c.client.CoreV1().Pods("default").Patch(ctx, "gated", types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"example.com/open","status":"True"}]}}`), metav1.PatchOptions{}, "status")
		require.NoError(c, err)
		c.pod("gated", time.Minute, ready)

		waits := func(name string) corev1.ContainerStateWaiting {
			return *c.pod(name, time.Second, func(*corev1.Pod) bool { return true }).Status.ContainerStatuses[0].State.Waiting
		}
		assert.Equal(c, corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: `MountVolume.SetUp failed for volume "v" : secret "late" not found`}, waits("mounts"))
		assert.Equal(c, corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `configmap "late" not found`}, waits("reads"))
		c.create("{apiVersion: v1, kind: Secret, metadata: {name: late}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: late}, data: {k: v}}")
		c.pod("mounts", 3*time.Minute, ready)
		c.pod("reads", 3*time.Minute, ready)

		_, err = kubectl.Run(ctx, c.cp.Config(), "logs", "host")
		assert.ErrorContains(c, err, "the node is simulated")
	})
}

// TestVolumes has claims that find a volume, are given one, or belong to one Pod.
func TestVolumes(t *testing.T) {
	simulateCluster(t, func(ctx context.Context, c cluster) {
		c.create(`
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: PersistentVolume
  metadata: {name: fits}
  spec: {storageClassName: shelf, capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /snow}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: finds}
  spec: {storageClassName: shelf, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: own}
  spec:
    containers: [{name: c, image: i}]
    volumes:
    - name: v
      ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: db}
  spec:
    serviceName: db
    replicas: 2
    selector: {matchLabels: {app: db}}
    template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: i}]}}
    volumeClaimTemplates:
    - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`)
		_, err := kubectl.Run(ctx, c.cp.Config(), "rollout", "status", "statefulset/db", "--timeout=5m")
		assert.NoError(c, err)
		c.pod("own", time.Minute, ready)
		_, err = kubectl.Run(ctx, c.cp.Config(), "wait", "pvc/finds", "--for=jsonpath={.status.phase}=Bound", "--timeout=5m")
		assert.NoError(c, err)
		_, err = kubectl.Run(ctx, c.cp.Config(), "delete", "pod/own", "--timeout=5m")
		assert.NoError(c, err)
		c.eventually(5*time.Minute, func() (bool, error) {
			volumes, err := c.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			return len(volumes.Items) == 3, fmt.Errorf("there are %d volumes", len(volumes.Items))
		})
	})
}

// TestMoreControllers has objects that wait for a controller alone.
func TestMoreControllers(t *testing.T) {
	simulateCluster(t, func(ctx context.Context, c cluster) {
		c.create(`
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: snow}
  spec:
    selector: {matchLabels: {app: snow}}
    template: {metadata: {labels: {app: snow}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: snow}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: snow}
    minReplicas: 3
    maxReplicas: 5
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaimTemplate
  metadata: {name: device}
  spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: snow}}]}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: claims}
  spec: {resourceClaims: [{name: d, resourceClaimTemplateName: device}], containers: [{name: c, image: i}]}
`)
		c.eventually(5*time.Minute, func() (bool, error) {
			d, err := c.client.AppsV1().Deployments("default").Get(ctx, "snow", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return d.Status.ReadyReplicas == 3, fmt.Errorf("%d are ready", d.Status.ReadyReplicas)
		})
		c.eventually(5*time.Minute, func() (bool, error) {
			claims, err := c.client.ResourceV1().ResourceClaims("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			return len(claims.Items) == 1, fmt.Errorf("there are %d claims", len(claims.Items))
		})
	})
}
