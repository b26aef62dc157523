package services

import (
	"context"
	"encoding/json"
	"expvar"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcdversion "go.etcd.io/etcd/api/v3/version"
)

// ServeHTTP answers as HTTP/1 clients on the listeners of Serve are answered.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.http().ServeHTTP(w, r) }

// newHTTPHandler returns what etcd serves over HTTP on its client port. It is not
// etcd's own, package etcdhttp, because that links all of etcd's server.
func (s *Server) newHTTPHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/health", getOnly(s.serveHealth))
	mux.HandleFunc("/version", getOnly(serveVersion))
	mux.HandleFunc("/debug/vars", getOnly(expvar.Handler().ServeHTTP))
	mux.Handle("/metrics", promhttp.HandlerFor(s.metricsRegistry(), promhttp.HandlerOpts{}))
	read := healthCheck{"serializable_read", s.checkRead}
	handleChecks(mux, "livez", read)
	handleChecks(mux, "readyz", healthCheck{"data_corruption", s.checkCorruption}, read,
		healthCheck{"linearizable_read", s.checkRead},
		healthCheck{"non_learner", func(context.Context) error { return nil }})
	if s.cfg.HTTP != nil {
		mux.Handle("/", s.cfg.HTTP)
	}
	return mux
}

// getOnly refuses other methods, as etcd words it.
func getOnly(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		serve(w, r)
	}
}

// serveHealth fails if keys can't be read, or for an alarm that r does not exclude.
func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) {
	reason := ""
	for _, a := range s.alarms() {
		if !slices.Contains(r.URL.Query()["exclude"], a.Alarm.String()) {
			reason = "ALARM " + a.Alarm.String()
			break
		}
	}
	if reason == "" {
		if err := s.checkRead(r.Context()); err != nil {
			reason = fmt.Sprintf("RANGE ERROR:%s", err)
		}
	}
	body, _ := json.Marshal(struct { // strings can always be encoded
		Health string `json:"health"`
		Reason string `json:"reason"`
	}{fmt.Sprint(reason == ""), reason})
	if reason != "" {
		http.Error(w, string(body), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write(body)
}

func serveVersion(w http.ResponseWriter, _ *http.Request) {
	body, _ := json.Marshal(etcdversion.Versions{ // strings can always be encoded
		Server: etcdversion.Version, Cluster: ClusterVersion(), Storage: StorageVersion,
	})
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// ClusterVersion is the version that all members of a cluster have in common.
func ClusterVersion() string { return etcdversion.Cluster(etcdversion.Version) + ".0" }

// healthCheck is one of the checks behind /livez and /readyz.
type healthCheck struct {
	name  string
	check func(context.Context) error
}

// handleChecks serves all checks of a kind at its path, but for excluded ones, and each
// below it.
func handleChecks(mux *http.ServeMux, kind string, checks ...healthCheck) {
	mux.HandleFunc("/"+kind, getOnly(serveChecks(checks)))
	for _, c := range checks {
		mux.HandleFunc("/"+kind+"/"+c.name, getOnly(serveChecks([]healthCheck{c})))
	}
}

func serveChecks(checks []healthCheck) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query, failed := r.URL.Query(), false
		var report strings.Builder
		for _, c := range checks {
			if len(checks) > 1 && slices.Contains(query["exclude"], c.name) {
				continue
			}
			if err := c.check(r.Context()); err != nil {
				failed = true
				fmt.Fprintf(&report, "[-]%s failed: %v\n", c.name, err)
			} else {
				fmt.Fprintf(&report, "[+]%s ok\n", c.name)
			}
		}
		if failed {
			http.Error(w, report.String(), http.StatusServiceUnavailable)
			return
		}
		if !query.Has("verbose") {
			report.Reset()
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		fmt.Fprintf(w, "%sok\n", &report)
	}
}

// checkRead reads a key.
func (s *Server) checkRead(ctx context.Context) error {
	_, err := s.store.Range(ctx, &pb.RangeRequest{Key: []byte{0}, KeysOnly: true, Limit: 1})
	return err
}

// checkCorruption looks for an alarm about corrupt data.
func (s *Server) checkCorruption(context.Context) error {
	for _, a := range s.alarms() {
		if a.Alarm == pb.AlarmType_CORRUPT {
			return fmt.Errorf("alarm activated: %s", a.Alarm)
		}
	}
	return nil
}

// alarms returns the alarms that are raised.
func (s *Server) alarms() []*pb.AlarmMember {
	stats, _ := s.store.Stats() // a closed store has alarms as well
	return stats.Alarms
}
