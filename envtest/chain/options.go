package chain

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"os"
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"snowglobe.test/envtest/chain/egress"
	"snowglobe.test/envtest/chain/inject"
)

// completeOptions is the first stage: parsed flags become completed, valid options.
func (c *Chain) completeOptions(ctx context.Context) error {
	run := c.cfg.Flags.run
	if err := c.setOwn(run); err != nil {
		return &FlagsError{err}
	}
	if err := awaitSigner(ctx, run); err != nil {
		return err
	}
	if err := c.check(ctx, run); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &FlagsError{err}
	}
	return nil
}

// FlagsError says what is wrong with the flags of a server, whatever else happens.
type FlagsError struct{ Err error }

func (e *FlagsError) Error() string { return e.Err.Error() }

func (e *FlagsError) Unwrap() error { return e.Err }

// setOwn sets what is the harness's own, as far as flags leave it to us.
func (c *Chain) setOwn(run *options.ServerRunOptions) error {
	if err := c.setServing(run); err != nil {
		return err
	}
	if err := setServiceAccountKeys(run, c.cfg.AccountKey); err != nil {
		return err
	}
	name, err := cache.NewInformerName(fmt.Sprintf("kube-apiserver-%s-%s", c.cfg.ControlPlane, c.cfg.Server))
	if err != nil {
		return err
	}
	c.informerName, run.InformerName = name, name
	decorators := &run.Admission.GenericAdmission.Decorators
	*decorators = append(admission.Decorators{
		admission.DecoratorFunc(c.caches.Decorate), inject.Webhooks(c.injector, egress.PastTLSProxies),
		admission.DecoratorFunc(c.quota.Decorate),
	}, *decorators...)
	c.setStore(run)
	return nil
}

// check completes the options, and refuses those with which a server would fail later.
func (c *Chain) check(ctx context.Context, run *options.ServerRunOptions) (err error) {
	if c.options, err = c.complete(ctx, run); err != nil {
		return err
	}
	if err := preread(run); err != nil {
		return err
	}
	return checkAdvertised(run)
}

// complete is upstream's completion and validation. A certificate file that is
// named meanwhile keeps it from writing an RSA key to the disk.
func (c *Chain) complete(ctx context.Context, run *options.ServerRunOptions) (options.CompletedOptions, error) {
	serving := &run.SecureServing.ServerCert
	own := serving.CertKey.CertFile == ""
	if own {
		serving.CertKey.CertFile, serving.CertKey.KeyFile = "content", "content"
	}
	life, end := context.WithCancel(c.life) // of the connection to a signer
	defer context.AfterFunc(ctx, end)()
	completed, err := run.Complete(life)
	if err != nil {
		end()
		return options.CompletedOptions{}, err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return options.CompletedOptions{}, utilerrors.NewAggregate(errs)
	}
	if own {
		serving.CertKey.CertFile, serving.CertKey.KeyFile = "", ""
		serving.GeneratedCert, err = dynamiccertificates.NewStaticCertKeyContent("serving-cert", c.cfg.Serving.Cert, c.cfg.Serving.Key)
		if err != nil {
			return options.CompletedOptions{}, fmt.Errorf("serving certificate: %w", err)
		}
	}
	return completed, nil
}

// setServing hands over the listener and the certificates as content: files would
// be watched through the operating system, which virtual time can't see.
func (c *Chain) setServing(run *options.ServerRunOptions) error {
	addr := c.cfg.Endpoint.Addr()
	run.SecureServing.Listener = c.cfg.Endpoint.Listener()
	run.SecureServing.BindPort, run.SecureServing.BindAddress = addr.Port, addr.IP
	bundle, err := c.clientCAs(run)
	if err != nil {
		return fmt.Errorf("client CA: %w", err)
	}
	ca, err := dynamiccertificates.NewStaticCAContent("client-ca", bundle)
	if err != nil {
		return fmt.Errorf("client CA: %w", err)
	}
	run.Authentication.ClientCert.CAContentProvider = ca
	return nil
}

// clientCAs are the harness's own authority and those of --client-ca-file, which is read
// once.
func (c *Chain) clientCAs(run *options.ServerRunOptions) ([]byte, error) {
	file := &run.Authentication.ClientCert.ClientCA
	if *file == "" {
		return c.cfg.ClientCA, nil
	}
	theirs, err := os.ReadFile(*file)
	*file = ""
	return slices.Concat(c.cfg.ClientCA, []byte("\n"), theirs), err
}

// setServiceAccountKeys gives the token issuer its key unless flags name key files.
func setServiceAccountKeys(run *options.ServerRunOptions, key *ecdsa.PrivateKey) error {
	accounts := run.Authentication.ServiceAccounts
	if run.ServiceAccountSigningKeyFile != "" || run.ServiceAccountSigningEndpoint != "" || len(accounts.KeyFiles) > 0 {
		return nil
	}
	if len(accounts.Issuers) == 0 || accounts.Issuers[0] == "" {
		return errors.New("--service-account-issuer must not be empty")
	}
	var err error
	if run.ServiceAccountIssuer, err = serviceaccount.JWTTokenGenerator(accounts.Issuers[0], key); err != nil {
		return fmt.Errorf("service account token issuer: %w", err)
	}
	if accounts.ExternalPublicKeysGetter, err = serviceaccount.StaticPublicKeysGetter([]any{key.Public()}); err != nil {
		return fmt.Errorf("service account public key: %w", err)
	}
	return nil
}

// setStore points the etcd clients that upstream insists on making at the store.
func (c *Chain) setStore(run *options.ServerRunOptions) {
	endpoints := c.cfg.Store.Endpoints()
	transport := &run.Etcd.StorageConfig.Transport
	transport.ServerList = endpoints.URLs
	transport.CertFile, transport.KeyFile, transport.TrustedCAFile = endpoints.CertFile, endpoints.KeyFile, endpoints.CAFile
}
