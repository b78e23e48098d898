package contract_test

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/contract"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func on(t *testing.T, servers ...*redistest.Server) contract.Servers {
	t.Helper()
	var plain []rueidis.Client
	for _, s := range servers {
		plain = append(plain, s.Client(t))
	}
	return contract.Servers{Option: servers[0].Option, Plain: func() []rueidis.Client { return plain }}
}

func TestStandalone(t *testing.T) {
	redistest.Together(t)
	redistest.Require(t)
	apart(t, standalone)
}

func standalone(t *testing.T) contract.Servers { return on(t, redistest.NewProcess(t)) }

// apart runs all contracts of one server, or one cluster, beside each other.
func apart(t *testing.T, servers func(*testing.T) contract.Servers) {
	t.Helper()
	contract.Locks(t, contract.Servers{Apart: servers})
	for name, tests := range others {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tests(t, servers(t))
		})
	}
}

// others are the contracts of all that is no lock of one holder.
var others = map[string]func(*testing.T, contract.Servers){
	"read-write locks": contract.ReadWriteLocks, "multi-locks": contract.MultiLocks, "semaphores": contract.Semaphores,
	"latches": contract.Latches, "barriers": contract.Barriers, "leaders": contract.Leaders, "fences": contract.Fences, "onces": contract.Onces,
}

func TestCluster(t *testing.T) {
	redistest.Together(t)
	apart(t, onCluster)
}

// onCluster is a cluster of its own.
func onCluster(t *testing.T) contract.Servers {
	t.Helper()
	cluster := redistest.NewCluster(t)
	s := on(t, cluster.Nodes...)
	s.Option = cluster.Option
	return s
}

// What the primitives promise is so as well where clients take turns with processes of Redisson.
func TestWithRedisson(t *testing.T) {
	redistest.Together(t)
	for what, servers := range map[string]func(*testing.T) contract.Servers{
		"standalone": standalone, "cluster": onCluster,
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Together(t)
			apart(t, func(t *testing.T) contract.Servers {
				s := servers(t)
				s.Options = []latchkey.Option{latchkey.WithRedisson()}
				return s
			})
		})
	}
}

func TestSeveral(t *testing.T) {
	redistest.Together(t)
	for what, opts := range map[string][]latchkey.Option{"latchkey": nil, "beside Redisson": {latchkey.WithRedisson()}} {
		t.Run(what, func(t *testing.T) {
			redistest.Together(t)
			var all []contract.Servers
			for range 5 {
				s := on(t, redistest.NewProcess(t))
				s.Options = opts
				all = append(all, s)
			}
			contract.Several(t, all...)
		})
	}
}
