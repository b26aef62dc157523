package kubelet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// page answers the requests for pages about the node.
func (k *Kubelet) page(request Request) (Answer, error) {
	if request.Method != http.MethodGet {
		return Answer{}, text(http.StatusMethodNotAllowed, "405: Method Not Allowed")
	}
	switch request.Path {
	case "/healthz", "/healthz/ping", "/healthz/log", "/healthz/syncloop":
		return Answer{Page: []byte("ok")}, nil
	case "/pods", "/runningpods/":
		return encoded(k.podList())
	case "/stats/summary":
		return encoded(k.summary())
	case "/configz":
		return encoded(map[string]any{"kubeletconfig": map[string]any{
			"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
		}})
	case "/metrics":
		return metric("kubelet_running_pods", "Number of pods that have a running pod sandbox", len(k.podList().Items)), nil
	case "/metrics/cadvisor":
		return metric("machine_cpu_cores", "Number of logical CPU cores.", 1), nil
	case "/metrics/resource":
		return metric("resource_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise", 0), nil
	case "/metrics/probes":
		return metric("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", 0), nil
	default:
		return Answer{}, text(http.StatusNotFound, "404: Page Not Found")
	}
}

// podList is the list of the pods, in the order in which they were added.
func (k *Kubelet) podList() *corev1.PodList {
	k.mu.Lock()
	pods := slices.Clone(k.pods)
	k.mu.Unlock()
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{}}
	for _, p := range pods {
		list.Items = append(list.Items, p.object(k.node))
	}
	return list
}

// summary names the node and the containers, which use nothing.
func (k *Kubelet) summary() *stats.Summary {
	now, none := metav1.NewTime(time.Now()), uint64(0)
	usage := func() (*stats.CPUStats, *stats.MemoryStats) {
		return &stats.CPUStats{Time: now, UsageNanoCores: &none, UsageCoreNanoSeconds: &none},
			&stats.MemoryStats{Time: now, UsageBytes: &none, WorkingSetBytes: &none}
	}
	summary := &stats.Summary{Node: stats.NodeStats{NodeName: k.node}, Pods: []stats.PodStats{}}
	summary.Node.CPU, summary.Node.Memory = usage()
	for _, pod := range k.podList().Items {
		p := stats.PodStats{PodRef: stats.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}}
		for _, container := range pod.Spec.Containers {
			c := stats.ContainerStats{Name: container.Name}
			c.CPU, c.Memory = usage()
			p.Containers = append(p.Containers, c)
		}
		summary.Pods = append(summary.Pods, p)
	}
	return summary
}

func encoded(object any) (Answer, error) {
	page, err := json.Marshal(object)
	return Answer{Page: page, ContentType: "application/json"}, err
}

// metric is a page with one gauge, in Prometheus' text format.
func metric(name, help string, value int) Answer {
	return Answer{
		Page:        fmt.Appendf(nil, "# HELP %s %s\n# TYPE %s gauge\n%s %d\n", name, help, name, name, value),
		ContentType: "text/plain; version=0.0.4; charset=utf-8",
	}
}

func servePage(w http.ResponseWriter, _ *http.Request, _ Request, answer Answer) {
	w.Header().Set("Content-Type", cmp.Or(answer.ContentType, "text/plain; charset=utf-8"))
	_, _ = w.Write(answer.Page) // the client may be gone
}
