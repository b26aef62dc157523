package external

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"
)

// alertWait is how long a server may take to refuse the client's certificate: in
// TLS 1.3 it does so after the client's handshake has succeeded.
const alertWait = time.Second

// Probe returns why endpoints fail, nil if none does; etcd's client only times out.
func (s *Store) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.DialTimeout)
	defer cancel()
	var all error
	for _, endpoint := range s.cfg.URLs {
		err := s.probeEndpoint(ctx, endpoint)
		switch {
		case err == nil:
		case all == nil:
			all = fmt.Errorf("%s: %w", endpoint, err)
		default: // on the same line
			all = fmt.Errorf("%w; %s: %w", all, endpoint, err)
		}
	}
	return all
}

func (s *Store) probeEndpoint(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	if u.Scheme != "https" {
		network, address := "tcp", u.Host
		if u.Scheme == "unix" {
			network, address = "unix", u.Host+u.Path
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return fmt.Errorf("%w; is etcd running there?", err)
		}
		return conn.Close()
	}
	cfg, err := s.tls()
	if err != nil {
		return err
	}
	conn, err := (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(alertWait)); err != nil {
		return err
	}
	var timeout net.Error
	if _, err := conn.Read(make([]byte, 1)); err != nil && !(errors.As(err, &timeout) && timeout.Timeout()) {
		return explain(err)
	}
	return nil
}

// explain adds to a TLS error what to do about it.
func explain(err error) error {
	var unverified *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var refused tls.AlertError
	var remote *net.OpError
	switch {
	case errors.As(err, &unverified):
		return fmt.Errorf("%w; is CAFile (up --etcd-cafile) the authority of the server's certificate, and is that valid for this host?", err)
	case errors.As(err, &plain):
		return fmt.Errorf("%w; the server does not speak TLS: write the URL with http://", err)
	case errors.As(err, &refused), errors.As(err, &remote) && remote.Op == "remote error":
		return fmt.Errorf("%w; the server wants another client certificate, or needs one: set CertFile and KeyFile (up --etcd-certfile and --etcd-keyfile)", err)
	default:
		return fmt.Errorf("%w; is etcd running there?", err)
	}
}
