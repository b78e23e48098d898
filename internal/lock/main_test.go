package lock_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.MainWithWorkers(m, worker) }

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
