package core_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const long = locktest.Long

// What the tests say often.
var (
	closeNow  = locktest.CloseNow
	do        = locktest.Do
	lockLater = locktest.Later[*grant.Hold]
	newLock   = locktest.New
	open      = locktest.Open
)
