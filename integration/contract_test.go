package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/test/contract"
)

// patient is how long the clients of the contracts wait for a server. No server is silent there, and a busy
// machine takes its time.
const patient = 3 * time.Second

// servers are the topology as the contracts see it. A node that cannot be written to now is left out.
func (top *topology) servers(t testing.TB) contract.Servers {
	t.Helper()
	plain := map[*node]rueidis.Client{}
	for _, n := range top.nodes {
		plain[n] = n.client(t)
	}
	slow := time.Duration(0)
	if _, inContainers := top.engine.(*containers); inContainers {
		slow = 2 * time.Second // a packet was lost, or a container stood still, in some runs of CI
	}
	return contract.Servers{
		Slow: slow,
		Option: func() rueidis.ClientOption {
			o := top.option()
			o.Dialer.Timeout, o.ConnWriteTimeout = patient, patient
			return o
		},
		Plain: func() (writable []rueidis.Client) {
			for _, n := range top.nodes {
				ctx, cancel := context.WithTimeout(context.Background(), patient)
				role, err := plain[n].Do(ctx, plain[n].B().Info().Section("replication").Build()).ToString()
				cancel()
				if err == nil && strings.Contains(role, "role:master") {
					writable = append(writable, plain[n])
				}
			}
			return writable
		},
	}
}

// What the locks promise holds on every topology.
func TestLocks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, top *topology) { contract.Locks(t, top.servers(t)) })
}

// What the read-write locks promise does.
func TestReadWriteLocks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, top *topology) { contract.ReadWriteLocks(t, top.servers(t)) })
}

// What multi-locks promise does.
func TestMultiLocks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, top *topology) { contract.MultiLocks(t, top.servers(t)) })
}

// What the semaphores promise does.
func TestSemaphores(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, top *topology) { contract.Semaphores(t, top.servers(t)) })
}

// What the latches and barriers promise does.
func TestLatches(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, top *topology) {
		contract.Latches(t, top.servers(t))
		contract.Barriers(t, top.servers(t))
	})
}

// What leaders and fenced writes promise does.
// Rules 43, 44.
func TestLeadersAndFences(t *testing.T) {
	each(t, func(t *testing.T, top *topology) {
		contract.Leaders(t, top.servers(t))
		contract.Fences(t, top.servers(t))
	})
}

// What is promised of what is run once does.
func TestOnces(t *testing.T) {
	each(t, func(t *testing.T, top *topology) { contract.Onces(t, top.servers(t)) })
}

// That of the locks and semaphores holds, too, when acquires wait for a replica.
func TestWithReplicas(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sentinel", "cluster"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := topologies[name](t, newEngine(t), calm)
			top.acknowledged(t)
			s := top.servers(t)
			s.Replicas = 1
			contract.Locks(t, s)
			contract.ReadWriteLocks(t, s)
			contract.Semaphores(t, s)
		})
	}
}
