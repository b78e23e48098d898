package once_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
)

func TestMethods(t *testing.T) {
	redistest.Together(t)
	redistest.Methods(t, &once.Once{}, "Do", "Done", "Inspect", "Name", "Result", "TryDo")
	redistest.Methods(t, &once.Job{}, "Name", "Run")
	redistest.Methods(t, &once.Run{}, "Attempt", "Hold", "SetResult", "Tick", "Token")
}
