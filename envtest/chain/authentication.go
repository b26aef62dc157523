package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics"
	"k8s.io/klog/v2"
	kubeauthenticator "k8s.io/kubernetes/pkg/kubeapiserver/authenticator"
	"k8s.io/kubernetes/pkg/kubeapiserver/options"
)

// withTokens asks tokens before upstream's authenticators, so that an added user
// needs no certificate check on each request.
func withTokens(tokens authenticator.Token, upstream authenticator.Request) authenticator.Request {
	if tokens == nil {
		return upstream
	}
	return union.New(group.NewAuthenticatedGroupAdder(bearer{tokens}), upstream)
}

// bearer finds the token in the Authorization header. Unlike upstream's it passes
// an unknown token on to the next authenticator without an error.
type bearer struct{ tokens authenticator.Token }

// AuthenticateRequest implements authenticator.Request.
func (b bearer) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	header := req.Header.Get("Authorization")
	token, ok := strings.CutPrefix(header, "Bearer ")
	if !ok || token == "" {
		return nil, false, nil
	}
	response, ok, err := b.tokens.AuthenticateToken(req.Context(), token)
	if ok {
		req.Header.Del("Authorization") // as upstream: it goes no further
	}
	return response, ok, err
}

// reloadInterval is how often the files of --authentication-config and --authorization-config,
// and in virtual time those of certificates, are looked at. Upstream does it every minute, and has
// the operating system tell it of changes besides, for which virtual time can't wait.
const reloadInterval = time.Second

// withoutFile returns the options without --authentication-config: applyJWT does what
// the file says.
func withoutFile(o *options.BuiltInAuthenticationOptions) *options.BuiltInAuthenticationOptions {
	if o.AuthenticationConfigFile == "" {
		return o
	}
	without := *o
	without.AuthenticationConfigFile = ""
	without.Anonymous = &options.AnonymousAuthenticationOptions{}
	return &without
}

// applyJWT adds the authenticators of --authentication-config: those of JSON web tokens
// before the others, and that of anonymous requests after them.
func (c *Chain) applyJWT(g *genericStage) error {
	if c.options.Authentication.AuthenticationConfigFile == "" {
		return nil
	}
	full, err := c.options.Authentication.ToAuthenticationConfig()
	if err != nil {
		return err
	}
	ctx := drained(g.config)
	tokens, update, _, _, err := kubeauthenticator.Config{
		AuthenticationConfig:  full.AuthenticationConfig,
		OIDCSigningAlgs:       full.OIDCSigningAlgs,
		APIAudiences:          full.APIAudiences,
		ServiceAccountIssuers: full.ServiceAccountIssuers,
		TokenSuccessCacheTTL:  full.TokenSuccessCacheTTL,
		TokenFailureCacheTTL:  full.TokenFailureCacheTTL,
		EgressLookup:          g.config.EgressSelector.Lookup,
		APIServerID:           g.config.APIServerID,
	}.New(ctx)
	if err != nil {
		return err
	}
	all := union.New(tokens, g.config.Authentication.Authenticator)
	if full.Anonymous.Enabled {
		all = union.NewFailOnError(all, anonymous.NewAuthenticator(full.Anonymous.Conditions))
	}
	g.config.Authentication.Authenticator = all

	metrics.RegisterMetrics()
	metrics.RecordAuthenticationConfigLastConfigInfo(g.config.APIServerID, full.AuthenticationConfigData)
	r := &jwtReloader{options: c.options.Authentication, first: full, seen: full.AuthenticationConfigData,
		update: update, server: g.config.APIServerID}
	go wait.UntilWithContext(ctx, r.look, reloadInterval)
	return nil
}

// jwtReloader sees changes of the file of --authentication-config.
type jwtReloader struct {
	options *options.BuiltInAuthenticationOptions
	first   kubeauthenticator.Config // of the start
	seen    string                   // what the file said when it was last looked at
	update  func(context.Context, *apiserver.AuthenticationConfiguration) error
	server  string // the API server's id, for the metrics
}

func (r *jwtReloader) look(ctx context.Context) {
	if err := r.reload(ctx); err != nil {
		klog.ErrorS(err, "failed to reload authentication config")
		metrics.RecordAuthenticationConfigAutomaticReloadFailure(r.server)
	}
}

// reload does nothing if the file is as it was. What can't be read or followed now is tried
// again; what is not valid never will be.
func (r *jwtReloader) reload(ctx context.Context) error {
	content, err := os.ReadFile(r.options.AuthenticationConfigFile)
	if err != nil || string(content) == r.seen {
		return err
	}
	config, err := r.options.ToAuthenticationConfig()
	if err == nil {
		err = r.validate(config.AuthenticationConfig)
	}
	if err != nil {
		r.seen = string(content)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, options.UpdateAuthenticationConfigTimeout)
	defer cancel()
	if err := r.update(ctx, config.AuthenticationConfig); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	r.seen = config.AuthenticationConfigData
	klog.InfoS("reloaded authentication config")
	metrics.RecordAuthenticationConfigAutomaticReloadSuccess(r.server, config.AuthenticationConfigData)
	return nil
}

func (r *jwtReloader) validate(config *apiserver.AuthenticationConfiguration) error {
	if !reflect.DeepEqual(config.Anonymous, r.first.AuthenticationConfig.Anonymous) {
		return errors.New("anonymous: changed from the configuration at the start")
	}
	return validation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), config,
		r.first.ServiceAccountIssuers).ToAggregate()
}
