package look

import (
	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/identity"
)

// Link is one of a circle of waits.
type Link struct {
	Party

	Holds    identity.Name `json:"holds"`
	WaitsFor identity.Name `json:"waits_for"`
}

// Chains are the circles that a client has found.
func Chains(found []latchkey.Deadlock) [][]Link {
	all := make([][]Link, len(found))
	for i, circle := range found {
		for _, b := range circle {
			all[i] = append(all[i], Link{partyOf(b), identity.Name(b.Holds), identity.Name(b.WaitsFor)})
		}
	}
	return all
}

func partyOf(b latchkey.Blocked) Party {
	p := newParty(b.Who)
	p.Owner = Told(b.Who.Client)
	return p
}
