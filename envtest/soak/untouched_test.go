//go:build soak

package soak_test

import (
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"
	_ "unsafe" // for linkname

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.uber.org/zap"
	"google.golang.org/grpc/grpclog"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
)

// untouched looks at what control planes share with the program and leave as it is, by the rows of
// the second table in ARCHITECTURE.
var untouched = map[string]func() any{
	"`wait.NeverStop`":   func() any { return pointers(wait.NeverStop) },
	"`flag.CommandLine`": commandLines,
	"`http.Default...`": func() any {
		return pointers(http.DefaultTransport, http.DefaultClient, http.DefaultServeMux)
	},
	"`log` and `slog`": func() any {
		return fmt.Sprint(log.Flags(), log.Prefix()) + pointers(log.Writer(), slog.Default())
	},
	"`zap.L` and gRPC's":   func() any { return pointers(zap.L(), grpcLogger) },
	"OpenTelemetry":        openTelemetry,
	"controller-runtime":   controllerRuntimeLogger,
	"leader election":      func() any { return fmt.Sprintf("%T", leaderMetrics.provider) },
	"client-go's warnings": func() any { return fmt.Sprintf("%T", defaultWarnings) },
	"`scheme.Scheme`":      func() any { return len(scheme.Scheme.AllKnownTypes()) },
	"folder and time zone": folderAndZone,
}

//go:linkname grpcLogger google.golang.org/grpc/grpclog/internal.LoggerV2Impl
var grpcLogger grpclog.LoggerV2

//go:linkname defaultWarnings k8s.io/client-go/rest.defaultWarningHandler
var defaultWarnings rest.WarningHandlerWithContext

//go:linkname leaderMetrics k8s.io/client-go/tools/leaderelection.globalMetricsFactory
var leaderMetrics struct {
	provider leaderelection.MetricsProvider
	once     sync.Once
}

// commandLines are the flags of the program, with what they say.
func commandLines() any {
	state := map[string]string{}
	flag.VisitAll(func(f *flag.Flag) { state[f.Name] = f.Value.String() })
	pflag.VisitAll(func(f *pflag.Flag) { state["--"+f.Name] = f.Value.String() })
	return state
}

func openTelemetry() any {
	tracers, meters, propagator := otel.GetTracerProvider(), otel.GetMeterProvider(), otel.GetTextMapPropagator()
	return fmt.Sprintf("%T %T %T ", tracers, meters, propagator) + pointers(tracers, meters)
}

// controllerRuntimeLogger is the type of what SetLogger has been given: the logger hands on to it.
func controllerRuntimeLogger() any {
	sink := reflect.ValueOf(crlog.Log.GetSink()).Elem().FieldByName("logger")
	if sink.IsNil() {
		return nil
	}
	return sink.Elem().Type().String()
}

func folderAndZone() any {
	folder, err := os.Getwd()
	return fmt.Sprint(folder, err, time.Local)
}

func lookAtUntouched() map[string]any {
	state := map[string]any{}
	for row, look := range untouched {
		state[row] = look()
	}
	return state
}

// swap sets a variable until the end of the test.
func swap[T any](t *testing.T, variable *T, to T) {
	before := *variable
	*variable = to
	t.Cleanup(func() { *variable = before })
}

// changeControllerRuntimeLogger does what SetLogger does, which has an effect only once in a process.
func changeControllerRuntimeLogger(t *testing.T) {
	sink := reflect.ValueOf(crlog.Log.GetSink()).Elem().FieldByName("logger")
	swap(t, (*logr.LogSink)(sink.Addr().UnsafePointer()), funcr.New(func(string, string) {}, funcr.Options{}).GetSink())
}

// TestUntouchedIsSeen changes what each row is about, and wants it seen there and nowhere else.
func TestUntouchedIsSeen(t *testing.T) {
	for row, change := range map[string]func(t *testing.T){
		"`wait.NeverStop`": func(t *testing.T) { swap(t, &wait.NeverStop, make(<-chan struct{})) },
		"`flag.CommandLine`": func(t *testing.T) {
			swap(t, &pflag.CommandLine, pflag.NewFlagSet("", 0))
			pflag.Int("snow", 1, "")
		},
		"`http.Default...`":  func(t *testing.T) { swap(t, &http.DefaultClient, &http.Client{}) },
		"`log` and `slog`":   func(t *testing.T) { log.SetPrefix("snow: "); t.Cleanup(func() { log.SetPrefix("") }) },
		"`zap.L` and gRPC's": func(t *testing.T) { t.Cleanup(zap.ReplaceGlobals(zap.NewExample())) },
		"OpenTelemetry": func(t *testing.T) {
			before := otel.GetTextMapPropagator()
			otel.SetTextMapPropagator(propagation.Baggage{})
			t.Cleanup(func() { otel.SetTextMapPropagator(before) })
		},
		"controller-runtime": changeControllerRuntimeLogger,
		"leader election":    func(t *testing.T) { swap(t, &leaderMetrics.provider, nil) },
		"client-go's warnings": func(t *testing.T) {
			swap[rest.WarningHandlerWithContext](t, &defaultWarnings, rest.NoWarnings{})
		},
		"`scheme.Scheme`":      func(t *testing.T) { swap(t, &scheme.Scheme, runtime.NewScheme()) },
		"folder and time zone": func(t *testing.T) { t.Chdir(t.TempDir()) },
	} {
		t.Run(row, func(t *testing.T) {
			before := lookAtUntouched()
			change(t)
			for other, now := range lookAtUntouched() {
				assert.Equal(t, other != row, cmp.Equal(before[other], now), other)
			}
		})
	}
}
