package records

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Who returns who the owner ids stand for that Redis has under a key, in their order. Of a client that does
// not tell it returns the id alone, and of an empty owner nothing. It asks Redis once, of other clients than
// this one. An answer that does not come is like one that says nothing.
func (r *Records) Who(ctx context.Context, key string, owners []string) []identity.Party {
	records, _ := r.read(ctx, key, owners)
	return partiesOf(owners, records)
}

// WhoAndForced is Who, and in the same trip who took the lock of the key away last, if Redis has that.
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

// mostRecord is how many bytes of a record are read. None of ours has as many, and what is cut off says nothing.
const mostRecord = 1 << 20

func (r *Records) get(key string) rueidis.Completed {
	return r.of.Commands.B().Getrange().Key(key).Start(0).End(mostRecord - 1).Build()
}

// read returns the records of the clients that these owners belong to. More questions go along with them in the same
// trip. Their answers are empty after an error.
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
