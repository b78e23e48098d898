package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// What a replica refuses passes, and is for another server.
func TestReplicaRefuses(t *testing.T) {
	b := newBench(t, redistest.NewProcess(t, "--replicaof", "127.0.0.1 1", "--replica-serve-stale-data", "yes"))
	for _, command := range [][]string{{"SET", "a", "b"}, {"WAIT", "1", "10"}} {
		err := b.do(command...).Error()
		require.Equal(t, lua.Refused, lua.Classify(err), "%v: %v", command, err)
		require.True(t, lua.Elsewhere(err), "%v: %v", command, err)
	}
	err := b.do("GET").Error()
	require.Equal(t, lua.Permanent, lua.Classify(err), err)
	require.False(t, lua.Elsewhere(err), err)
}
