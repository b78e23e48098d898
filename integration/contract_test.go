package integration

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/contract"
)

// servers are the topology as the contracts see it. A node that cannot be written to now is left out.
func (top *topology) servers(t testing.TB) contract.Servers {
	t.Helper()
	plain := map[*node]rueidis.Client{}
	for _, n := range top.nodes {
		plain[n] = n.client(t)
	}
	return contract.Servers{
		Option: top.option,
		Plain: func() (writable []rueidis.Client) {
			for _, n := range top.nodes {
				if m, err := n.ask("INFO", "replication"); err == nil {
					if text, _ := m.ToString(); strings.Contains(text, "role:master") {
						writable = append(writable, plain[n])
					}
				}
			}
			return writable
		},
	}
}

// What the locks promise holds on every topology.
func TestLocks(t *testing.T) {
	each(t, func(t *testing.T, top *topology) { contract.Locks(t, top.servers(t)) })
}
