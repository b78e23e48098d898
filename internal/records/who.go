package records

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Who returns whom owners stand for: owner ids that Redis has under key. If a client tells nothing, its party has the
// id alone. An empty owner gives an empty party. Who asks Redis once, and only about other clients. An answer that
// does not come counts as an answer that says nothing.
func (r *Records) Who(ctx context.Context, key string, owners []string) []identity.Party {
	records, _ := r.read(ctx, key, owners)
	return partiesOf(owners, records)
}

// WhoAndForced is Who. In the same trip it reads who took the lock of key away last, if Redis has that.
func (r *Records) WhoAndForced(ctx context.Context, key string, owners []string) (all []identity.Party, forced identity.Party) {
	records, more := r.read(ctx, key, owners, r.get(lua.ForcedRecord(key)))
	return partiesOf(owners, records), forcedBy(more[0])
}

func partiesOf(owners []string, records map[string]identity.Record) []identity.Party {
	parties := make([]identity.Party, len(owners))
	for i, owner := range owners {
		if owner != "" {
			parties[i] = identity.PartyOf(owner, records[lua.ClientOf(owner)])
		}
	}
	return parties
}

// mostRecord is how many bytes of a record are read. No record of ours has so many bytes, and a record that is cut
// off says nothing.
const mostRecord = 1 << 20

func (r *Records) get(key string) rueidis.Completed {
	return r.of.Commands.B().Getrange().Key(key).Start(0).End(mostRecord - 1).Build()
}

// read returns the records of the clients to which owners belong. It sends the commands of more in the same trip.
// After an error their answers are empty.
func (r *Records) read(ctx context.Context, key string, owners []string, more ...rueidis.Completed) (_ map[string]identity.Record, answers []string) {
	records := map[string]identity.Record{}
	var others []string
	var commands []rueidis.Completed
	for _, owner := range owners {
		client := lua.ClientOf(owner)
		if _, known := records[client]; known {
			continue
		}
		records[client] = identity.Record{}
		if client == r.of.ID {
			records[client] = r.own(r.host.Tenures())
		} else if at := identity.KeyBeside(key, client); at != "" {
			others = append(others, client)
			commands = append(commands, r.get(at))
		}
	}
	if commands = append(commands, more...); len(commands) > 0 {
		for i, reply := range r.host.Ask(ctx, commands...) {
			text, err := reply.ToString()
			switch {
			case i >= len(others):
				answers = append(answers, text)
			case err == nil:
				records[others[i]], _ = identity.Parse(text)
			}
		}
	}
	return records, answers
}
