package upstream

import (
	"context"
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/options/authorizationconfig/metrics"
)

// checkAuthorizationFile reads the file again and, if it has changed and is valid, has the
// authorizer follow it.
//
//go:linkname checkAuthorizationFile k8s.io/kubernetes/pkg/kubeapiserver/authorizer.(*reloadableAuthorizerResolver).checkFile
func checkAuthorizationFile(resolver unsafe.Pointer, ctx context.Context)

// ReloadAuthorization has the authorizer that upstream has made of a configuration's content
// follow its file until the context ends. Upstream would do it by itself, and have the
// operating system tell it of changes, for which virtual time can't wait.
func ReloadAuthorization(
	ctx context.Context, of authorizer.Authorizer, path, content, server string, interval time.Duration,
) error {
	resolver := reflect.ValueOf(of)
	if resolver.Kind() != reflect.Pointer || resolver.Type().String() != "*authorizer.reloadableAuthorizerResolver" {
		return fmt.Errorf("upstream changed: the authorizer is a %T", of)
	}
	file := resolver.Elem().FieldByName("initialConfig").FieldByName("ReloadFile")
	if !file.IsValid() || file.Kind() != reflect.String {
		return fmt.Errorf("upstream changed: a %T has no initialConfig.ReloadFile", of)
	}
	*(*string)(unsafe.Pointer(file.UnsafeAddr())) = path
	metrics.RegisterMetrics()
	metrics.RecordAuthorizationConfigLastConfigInfo(server, content)
	go wait.UntilWithContext(ctx, func(ctx context.Context) { checkAuthorizationFile(resolver.UnsafePointer(), ctx) },
		interval)
	return nil
}
