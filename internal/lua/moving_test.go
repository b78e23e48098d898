package lua_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// What a command or a script is told while a slot is moving passes, in the words of each server.
func TestMovingSlotsPass(t *testing.T) {
	s := redistest.NewEmbedded(t).Client(t)
	for _, text := range []string{
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"ERR Script attempted to access a non local key in a cluster node script: 8b5a, on @user_script:1.",
		"Script attempted to access a non local key in a cluster node script: 8b5a, on @user_script:1.",
		"ERR Error running script (call to f_8b5a): @user_script:1: Lua script attempted to access a non local key in a cluster node",
		"ERR user_script:14: TRYAGAIN the slot is moving, and latchkey_queue:{a} may be on the other side script: 8b5a, on @user_script:14.",
	} {
		err := s.Do(t.Context(), s.B().Eval().Script("return {err = ARGV[1]}").Numkeys(0).Arg(text).Build()).Error()
		require.Error(t, err)
		require.Equal(t, lua.Refused, lua.Classify(err), text)
		require.True(t, lua.Passing(fmt.Errorf("it says: %w", err)))
	}
	require.True(t, lua.Passing(lua.ErrMoving))
}
