package turn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := New()
		require.NoError(t, lock.Take(t.Context()))
		late := errors.New("late")
		limited, cancel := context.WithTimeoutCause(t.Context(), time.Minute, late)
		defer cancel()
		assert.ErrorIs(t, lock.Take(limited), late, "the lock is held, and taking")
		time.AfterFunc(time.Hour, lock.Give)
		assert.NoError(t, lock.Take(t.Context()))
		lock.Give()
	})
}
