package controllers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllers"
	"snowglobe.test/envtest/nodes"
)

// TestDeployment rolls a Deployment out, forth and back on nodes whose Pods take ten
// seconds to become ready.
func TestDeployment(t *testing.T) {
	script := func(*corev1.Pod) nodes.Script { return nodes.Script{ReadyAfter: 10 * time.Second} }
	simulateNodes(t, script, func(c cluster) {
		ctx := context.Background()
		labels := map[string]string{"app": "snow"}
		deployments := c.client.AppsV1().Deployments("default")
		_, err := deployments.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "snow"},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: podTemplate("v1", labels),
			},
		}, metav1.CreateOptions{})
		require.NoError(c, err)
		rolledOut := func(image string, revision string) {
			c.Helper()
			c.eventually(10*time.Minute, func() (bool, error) {
				d, err := deployments.Get(ctx, "snow", metav1.GetOptions{})
				if err != nil {
					return false, err
				}
				pods := c.pods("app=snow")
				images := map[string]int{}
				for _, pod := range pods {
					images[pod.Spec.Containers[0].Image]++
				}
				s := d.Status
				return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == 3 && s.AvailableReplicas == 3 && s.Replicas == 3 &&
					images[image] == 3 && len(pods) == 3 && d.Annotations["deployment.kubernetes.io/revision"] == revision, fmt.Errorf("%v, %+v", images, s)
			})
		}
		rolledOut("v1", "1")
		update := func(image string) {
			patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":%q}]}}}}`, image)
			_, err := deployments.Patch(ctx, "snow", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
			require.NoError(c, err)
		}
		update("v2")
		rolledOut("v2", "2")
		update("v1")
		rolledOut("v1", "3")
	}, "deployment", "replicaset")
}

// TestCronJob fires once an hour for a day. There is no scheduler, which looks around once
// a second: the Pods name their node.
func TestCronJob(t *testing.T) {
	simulateWith(t, []envtest.Option{envtest.WithoutHousekeeping()}, func(c cluster) {
		ctx := context.Background()
		nodes.Start(c.T, c.cp.Config(), nodes.Config{Heartbeat: -1})
		cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "often"}}
		cron.Spec.Schedule, cron.Spec.SuccessfulJobsHistoryLimit = "@hourly", new(int32(100))
		cron.Spec.JobTemplate.Spec.Template = podTemplate("i", nil)
		cron.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		cron.Spec.JobTemplate.Spec.Template.Spec.NodeName = "node-0"
		_, err := c.client.BatchV1().CronJobs("default").Create(ctx, cron, metav1.CreateOptions{})
		require.NoError(c, err)
		time.Sleep(24*time.Hour + 30*time.Second)
		jobs, err := c.client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
		require.NoError(c, err)
		assert.Len(c, jobs.Items, 24)
		for _, job := range jobs.Items {
			assert.EqualValues(c, 1, job.Status.Succeeded, job.Name)
		}
	}, "cronjob", "job")
}

// TestCrashLoop has a Pod that fails, again and again, and one that is never started.
func TestCrashLoop(t *testing.T) {
	script := func(pod *corev1.Pod) nodes.Script {
		if pod.Name == "never" {
			return nodes.Script{Never: true}
		}
		return nodes.Script{Runs: time.Second, ExitCode: 1}
	}
	simulateNodes(t, script, func(c cluster) {
		for _, name := range []string{"loops", "never"} {
			template := podTemplate("i", map[string]string{"name": name})
			_, err := c.client.CoreV1().Pods("default").Create(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: template.Spec}, metav1.CreateOptions{})
			require.NoError(c, err)
		}
		time.Sleep(2 * time.Minute) // 0, 11, 32 and 73 seconds
		byName := map[string]corev1.Pod{}
		for _, pod := range c.pods("") {
			byName[pod.Name] = pod
		}
		require.Len(c, byName["loops"].Status.ContainerStatuses, 1)
		status := byName["loops"].Status.ContainerStatuses[0]
		assert.EqualValues(c, 4, status.RestartCount)
		assert.Equal(c, "CrashLoopBackOff", status.State.Waiting.Reason)
		assert.Equal(c, corev1.PodPending, byName["never"].Status.Phase)
		assert.NotEmpty(c, byName["never"].Spec.NodeName, "bound")
		require.NoError(c, c.client.CoreV1().Pods("default").Delete(context.Background(), "loops", metav1.DeleteOptions{}))
		c.eventually(time.Minute, func() (bool, error) { return len(c.pods("")) == 1, nil })
	}, "node-lifecycle-controller")
}

// TestCrash crashes the controllers while a Deployment grows: nothing of them goes on, and
// started again they take it to its end.
func TestCrash(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		program := controllers.Start(t, cp, "deployment", "replicaset")
		c := newCluster(t, cp)
		labels := map[string]string{"app": "snow"}
		require.NoError(t, program.Crash(t.Context()))
		_, err := c.client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "snow"},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: podTemplate("v1", labels),
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		assert.Empty(t, c.pods("app=snow"))
		require.NoError(t, program.Start(t.Context()))
		assert.ErrorContains(t, program.Start(t.Context()), "it runs already")
		c.eventually(time.Minute, func() (bool, error) { return len(c.pods("app=snow")) == 3, nil })
	})
}

func TestUnknownController(t *testing.T) {
	_, err := controllers.Launch(t.Context(), nil, "deploymnet")
	assert.ErrorContains(t, err, `kube-controller-manager has no controller "deploymnet"; did you mean deployment?`)
	_, err = controllers.Launch(t.Context(), nil, "snow")
	assert.ErrorContains(t, err, `kube-controller-manager has no controller "snow"; there are bootstrap-signer-controller,`)
}

// TestNames reads lists of controllers as kube-controller-manager's flag does.
func TestNames(t *testing.T) {
	for _, names := range [][]string{nil, {"*"}, {"default", "bootstrapsigner"}, {"-deployment", "*"}} {
		assert.NoError(t, controllers.Check(names...), "%q", names)
		assert.True(t, controllers.MakeServiceAccounts(names...), "%q", names)
	}
	assert.False(t, controllers.MakeServiceAccounts("*", "-serviceaccount"))
	assert.ErrorContains(t, controllers.Check("-deployment"), "-deployment names no controller to run; begin with *")
	assert.ErrorContains(t, controllers.Check("*", "-deploymnet"), `no controller "deploymnet"; did you mean deployment?`)
}
