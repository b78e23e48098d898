package property_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// How many scenarios there are on each server, and how many operations each has: about a minute together. Of
// those in which clients stall most of the time is that of the stalls.
const (
	scenarios, manyScenarios = 35, 1000
	embedded, manyEmbedded   = 6, 100
	stalling, manyStalling   = 1, 30
	steps                    = 400
)

// Whatever two clients do with all primitives under three names, one after the other, each call returns what
// the documentation says, and nothing is left behind.
func TestRandomOperations(t *testing.T) {
	randomly(t, false, func(t *testing.T) int64 {
		if strings.HasSuffix(t.Name(), "embedded") {
			if redistest.Brief() {
				return 1
			}
			return redistest.Rounds(embedded, manyEmbedded)
		}
		return redistest.Rounds(scenarios, manyScenarios)
	})
}

// It is so as well when what a client sends, or reads, is late now and then by more than others do meanwhile,
// as on a machine that is busy.
func TestRandomOperationsOfClientsThatStall(t *testing.T) {
	redistest.Together(t)
	randomly(t, true, func(*testing.T) int64 { return redistest.Rounds(stalling, manyStalling) })
}

// randomly plays so many scenarios on each server.
func randomly(t *testing.T, stalls bool, runs func(*testing.T) int64) {
	seed := redistest.Seed(t)
	t.Logf("LATCHKEY_SEED=%d", seed)
	redistest.EachServed(t, func(t *testing.T, server *redistest.Server) {
		plain := server.Client(t)
		require.NoError(t, plain.Do(t.Context(), plain.B().Ping().Build()).Error())
		others := goleak.IgnoreCurrent() // of the server, and of the plain client
		total := tally{}
		for n := range runs(t) {
			s := &scene{
				t: t, server: server, plain: plain, random: rand.New(rand.NewPCG(seed, uint64(n))), stalls: stalls,
				about: fmt.Sprintf("LATCHKEY_SEED=%d, scenario %d", seed, n), done: total,
			}
			s.play(steps)
			require.NoError(t, goleak.Find(append([]goleak.Option{others}, redistest.Lingering...)...), "%s", s.about)
		}
		t.Logf("%s", total)
	})
}
