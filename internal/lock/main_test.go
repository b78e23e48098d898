package lock_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/locktest"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestMain(m *testing.M) {
	if mode := redistest.Mode(); mode != nil {
		worker(mode)
		return
	}
	redistest.Main(m)
}

const long = locktest.Long

// What the tests say often.
var (
	clean          = locktest.Clean
	do             = locktest.Do
	each           = locktest.Each
	kinds          = locktest.Kinds
	lingeringOrNot = locktest.LingeringOrNot
	lockLater      = locktest.Later[*grant.Hold]
	mustLock       = locktest.Must[*grant.Hold]
	newLock        = locktest.New
	open           = locktest.Open
	queued         = locktest.Queued
	took           = locktest.Took
)
