package kms_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/kms"
)

// TestHeld has the client give up on a call that is not answered.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		plugin := serve(t, l, kms.Config{})
		client := dial(t, l)
		gate := plugin.Encrypt.Hold(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := client.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: "1", Plaintext: secret})
		assert.Equal(t, codes.DeadlineExceeded, status.Code(err))
		calls, err := plugin.Encrypt.Await(t.Context(), 1)
		require.NoError(t, err)
		assert.ErrorContains(t, calls[0].Err, "held at a gate: context")
		gate.Open()
		encrypt(t, client)

		plugin.Encrypt.Use(kms.EncryptRule{Delay: time.Minute})
		began := time.Now()
		encrypt(t, client)
		assert.Equal(t, time.Minute, time.Since(began))
	})
}

func TestStopWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		plugin := kms.Serve(l, kms.Config{})
		client := dial(t, l)
		plugin.Status.Use(kms.StatusRule{Delay: time.Hour})
		outcome := make(chan error, 1)
		go func() {
			_, err := client.Status(t.Context(), &kmsapi.StatusRequest{})
			outcome <- err
		}()
		synctest.Wait()
		began := time.Now()
		require.NoError(t, plugin.Stop(t.Context()))
		assert.Equal(t, time.Hour, time.Since(began))
		assert.NoError(t, <-outcome)
		assert.NoError(t, plugin.Stop(t.Context()), "again")
		_, err := client.Status(t.Context(), &kmsapi.StatusRequest{})
		assert.Equal(t, codes.Unavailable, status.Code(err))
	})
}

// TestStopBreaksCallsOff has one connection that calls, and one that never says a word.
func TestStopBreaksCallsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		plugin := kms.Serve(l, kms.Config{})
		client := dial(t, l)
		returned := false
		plugin.Status.Use(kms.StatusRule{Answer: func(ctx context.Context, _ kms.StatusRequest) (kms.StatusAnswer, error) {
			<-ctx.Done()
			time.Sleep(time.Minute)
			returned = true
			return kms.StatusAnswer{}, ctx.Err()
		}})
		outcome := make(chan error, 1)
		go func() {
			_, err := client.Status(t.Context(), &kmsapi.StatusRequest{})
			outcome <- err
		}()
		silent, err := l.DialContext(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("a second is over"))
		defer cancel()
		assert.ErrorContains(t, plugin.Stop(ctx), "broken off: a second is over")
		assert.Equal(t, time.Second+time.Minute, time.Since(began))
		assert.True(t, returned, "the call has ended")
		assert.Equal(t, codes.Unavailable, status.Code(<-outcome))
		assert.NoError(t, silent.Close())
	})
}

func TestStopTellsThatTheListenerFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		plugin := kms.Serve(l, kms.Config{})
		require.NoError(t, l.Close())
		synctest.Wait()
		assert.ErrorContains(t, plugin.Stop(t.Context()), "serve a KMS plugin on 127.0.0.1:0: accept memory")
	})
}
