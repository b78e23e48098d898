package grant_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const long = locktest.Long

type attempt = locktest.Attempt

// What the tests say often.
var (
	clean          = locktest.Clean
	closeNow       = locktest.CloseNow
	do             = locktest.Do
	each           = locktest.Each
	eachThrough    = locktest.EachThrough
	inLine         = locktest.InLine
	kinds          = locktest.Kinds
	lease          = locktest.Lease
	lingeringOrNot = locktest.LingeringOrNot
	lockLater      = locktest.Later[*grant.Hold]
	mustLock       = locktest.Must[*grant.Hold]
	newLock        = locktest.New
	newSemaphore   = locktest.NewSemaphore
	open           = locktest.Open
	queued         = locktest.Queued
	replicas       = locktest.Replicas
	serves         = locktest.Serves
	took           = locktest.Took
)
