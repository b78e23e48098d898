package contract_test

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/contract"
	"github.com/latchkey-go/latchkey/internal/redistest"
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
	contract.Locks(t, on(t, redistest.NewProcess(t)))
	contract.ReadWriteLocks(t, on(t, redistest.NewProcess(t)))
	contract.MultiLocks(t, on(t, redistest.NewProcess(t)))
	contract.Semaphores(t, on(t, redistest.NewProcess(t)))
	contract.Latches(t, on(t, redistest.NewProcess(t)))
	contract.Barriers(t, on(t, redistest.NewProcess(t)))
	contract.Leaders(t, on(t, redistest.NewProcess(t)))
	contract.Fences(t, on(t, redistest.NewProcess(t)))
	contract.Onces(t, on(t, redistest.NewProcess(t)))
}

func TestCluster(t *testing.T) {
	redistest.Together(t)
	primitives(t, onCluster(t))
}

// onCluster is a cluster of its own.
func onCluster(t *testing.T) contract.Servers {
	t.Helper()
	cluster := redistest.NewCluster(t)
	s := on(t, cluster.Nodes...)
	s.Option = cluster.Option
	return s
}

// primitives runs all contracts of one server, or one cluster.
func primitives(t *testing.T, s contract.Servers) {
	t.Helper()
	contract.Locks(t, s)
	contract.ReadWriteLocks(t, s)
	contract.MultiLocks(t, s)
	contract.Semaphores(t, s)
	contract.Latches(t, s)
	contract.Barriers(t, s)
	contract.Leaders(t, s)
	contract.Fences(t, s)
	contract.Onces(t, s)
}

// What the primitives promise is so as well where clients take turns with processes of Redisson.
func TestWithRedisson(t *testing.T) {
	redistest.Together(t)
	for what, servers := range map[string]func(*testing.T) contract.Servers{
		"standalone": func(t *testing.T) contract.Servers { return on(t, redistest.NewProcess(t)) },
		"cluster":    onCluster,
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Together(t)
			s := servers(t)
			s.Options = []latchkey.Option{latchkey.WithRedisson()}
			primitives(t, s)
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
