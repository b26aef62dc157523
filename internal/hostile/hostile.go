// Package hostile is the environment of another user's machine, for tests that show that
// it changes nothing: proxies that do not answer, a home folder with settings of kubectl,
// another time zone and language, and the switches of Kubernetes' and Go's own libraries.
package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// files are what the home folder holds, by their paths in it.
var files = map[string]string{
	".kube/config": `apiVersion: v1
kind: Config
current-context: elsewhere
contexts: [{name: elsewhere, context: {cluster: elsewhere, user: stranger, namespace: elsewhere}}]
clusters: [{name: elsewhere, cluster: {server: "https://127.0.0.1:9", proxy-url: "http://127.0.0.1:9"}}]
users: [{name: stranger, user: {token: nonsense}}]
`,
	".kube/kuberc": `apiVersion: kubectl.config.k8s.io/v1beta1
kind: Preference
defaults:
- {command: get, options: [{name: output, default: yaml}]}
- {command: apply, options: [{name: server-side, default: "true"}, {name: dry-run, default: server}]}
- {command: delete, options: [{name: wait, default: "false"}]}
`,
	".kube/cache/discovery": "not a folder\n",
	".kube/cache/http":      "not a folder\n",
	"nonsense.kubeconfig":   "nonsense: [\n",
	"tmp/elsewhere/.keep":   "",
}

// variables are all others, with names that libraries in the process look for.
var variables = []string{
	"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=socks5://stranger:secret@127.0.0.1:9", "ALL_PROXY=http://127.0.0.1:9", "FTP_PROXY=http://127.0.0.1:9",
	"http_proxy=socks5://127.0.0.1:9", "https_proxy=http://127.0.0.1:9", "all_proxy=socks5://127.0.0.1:9",
	"NO_PROXY=,;10.0.0.0/33,*.,.,[::1", "no_proxy=,;10.0.0.0/33,*.,.,[::1",
	"TZ=Pacific/Chatham", "LANG=de_DE.UTF-8", "LC_ALL=zh_CN.UTF-8", "LC_MESSAGES=ja_JP.UTF-8", "LANGUAGE=fr:it",
	"USER=stranger", "LOGNAME=stranger", "HOSTNAME=elsewhere", "CI=true", "TERM=dumb",
	"KUBERC=off", "KUBE_EDITOR=false", "EDITOR=false", "KUBERNETES_MASTER=http://127.0.0.1:9",
	"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=9", "POD_NAMESPACE=elsewhere",
	"KUBE_FEATURE_WatchListClient=false", "KUBE_FEATURE_ClientsAllowCBOR=true", "KUBE_FEATURE_ClientsPreferCBOR=true",
	"KUBE_FEATURE_InOrderInformers=false", "KUBE_CLIENT_BACKOFF_BASE=30", "KUBE_CLIENT_BACKOFF_DURATION=300",
	"KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE=nonsense", "KUBE_APISERVER_STRICT_REMOVED_API_HANDLING_IN_ALPHA=nonsense",
	"KUBE_APISERVER_AVOID_NOOP_SSA_TIMESTAMP_UPDATES=false", "KUBE_CACHE_MUTATION_DETECTOR=true",
	"KUBECTL_APPLYSET=true", "KUBECTL_OPENAPIV3_PATCH=false", "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false",
	"KUBECTL_PORT_FORWARD_WEBSOCKETS=false", "KUBECTL_EXTERNAL_DIFF=false", "KUBECTL_COMMAND_HEADERS=false",
	"HTTP2_READ_IDLE_TIMEOUT_SECONDS=1", "HTTP2_PING_TIMEOUT_SECONDS=1",
	"GODEBUG=http2debug=1,http2client=0,netdns=cgo+1,randautoseed=0,x509sha256skid=0,httplaxcontentlength=1",
	"GOGC=50", "GOMAXPROCS=3", "GOTRACEBACK=all",
	"ETCD_CLIENT_DEBUG=debug", "ETCD_NAME=elsewhere", "ETCD_DATA_DIR=/nowhere", "ETCDCTL_API=2",
	"GRPC_GO_LOG_SEVERITY_LEVEL=info", "GRPC_GO_LOG_VERBOSITY_LEVEL=99", "GRPC_ENFORCE_ALPN_ENABLED=false",
	"OTEL_SERVICE_NAME=elsewhere", "OTEL_TRACES_SAMPLER=always_on", "OTEL_RESOURCE_ATTRIBUTES=a=b",
	"SWAGGER_DEBUG=", "ZONEINFO=/nowhere.zip", "SSL_CERT_FILE=/nowhere.pem", "SSL_CERT_DIR=/nowhere",
	"NO_COLOR=1",
}

// Environment makes a home folder and a folder for temporary files in dir, and returns the
// variables. It comes after a process's own.
func Environment(dir string) ([]string, error) {
	home, err := filepath.Abs(filepath.Join(dir, "home of a stranger"))
	if err != nil {
		return nil, err
	}
	for name, text := range files {
		file := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, fmt.Errorf("a home folder: %w", err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("a home folder: %w", err)
		}
	}
	return append([]string{
		"HOME=" + home,
		"KUBECONFIG=" + filepath.Join(home, "nonsense.kubeconfig"),
		"KUBECACHEDIR=" + filepath.Join(home, ".kube", "cache", "http"),
		"XDG_CONFIG_HOME=" + filepath.Join(home, "elsewhere"), // in which the go command keeps notes
		"XDG_DATA_HOME=" + filepath.Join(home, "elsewhere"),
		"TMPDIR=" + filepath.Join(home, "tmp", "elsewhere"),
		"SNOWGLOBE_TEST_LONG=" + strings.Repeat("x", 3000),
	}, variables...), nil
}
