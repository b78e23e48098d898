package barrier_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A client whose Await or Join was refused is no member: its Leave has nothing to send.
func TestLeaveAfterARefusal(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		require.NoError(t, plain.Do(t.Context(), plain.B().Set().Key("a").Value("foreign").Build()).Error())
		b := newBarrier(t, open(t, s.Option()), 2)
		_, err := b.Await(t.Context())
		require.ErrorIs(t, err, latchkey.ErrWrongType)
		require.NoError(t, b.Leave(t.Context()))
		require.ErrorIs(t, b.Join(t.Context()), latchkey.ErrWrongType)
		require.NoError(t, b.Leave(t.Context()))
		keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("*").Build()).AsStrSlice()
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, keys)

		require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
		require.NoError(t, b.Join(t.Context()), "it can become one later")
		members(t, plain, 1)
		require.NoError(t, b.Leave(t.Context()))
		members(t, plain, 0)
	})
}

// Nor does a Leave after that break what others wait in.
func TestRefusedPartyDisturbsNobody(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	one, other := newBarrier(t, open(t, s.Option()), 2), open(t, s.Option())
	w := arrive(t, one, 1)
	refused := newBarrier(t, other, 3)
	_, err := refused.Await(t.Context())
	require.ErrorIs(t, err, barrier.ErrParties)
	require.NoError(t, refused.Leave(t.Context()))
	broken(t, one, false)
	_, err = newBarrier(t, other, 2).Await(t.Context())
	require.NoError(t, err)
	_, err = w.result(t)
	require.NoError(t, err)
}
