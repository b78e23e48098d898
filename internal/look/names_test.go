package look

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// A semaphore whose number of permits was deleted is a row that says so: the others can be looked at.
func TestOneThatCannotBeTold(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := locktest.ClientOf(t, s)
	permits := latchkey.Must(semaphore.New(c, "exports"))
	require.NoError(t, permits.SetCapacity(t.Context(), 2))
	held, err := permits.Acquire(t.Context(), 1)
	require.NoError(t, err)
	defer func() { _ = held.Release(t.Context()) }()
	plain := s.Client(t)
	require.NoError(t, locktest.Do(t, plain, "DEL", "exports").Error())
	all, err := New(c, plain, "").Reports(t.Context(), []string{"exports", "orders"})
	require.NoError(t, err)
	require.Contains(t, all[0].Error, "not set")
	require.Equal(t, KindFree, all[1].Kind)
}
