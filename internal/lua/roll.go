package lua

import (
	"context"
	"errors"
	"strconv"
)

var roll = [families]*Script{
	Locks:     script(Locks, "shared/roll.lua"),
	Leased:    script(Leased, "shared/roll.lua"),
	Plain:     script(Plain, "shared/roll.lua"),
	ReadWrite: script(ReadWrite, "shared/roll.lua"),
}

// RollPart is how many entries a script reads: in about a millisecond.
const RollPart = 4000

// Roll is what [Conn.Roll] has read.
type Roll struct {
	Entries []string // those of the client
	End     string   // the next part begins behind this entry; empty: the queue has ended
	Read    int64    // how many entries were read, if it has not ended
	Length  int64    // of the queue
	Now     int64    // the server's clock in microseconds
	After   int64    // as in [Acquired]
	Gone    bool     // nothing was read: the entry is not there behind which it should have begun
}

// Roll runs shared/roll.lua. It reads so many entries of the queue, behind the one that it is given or from
// the head, and returns those of a client.
func (c Conn) Roll(ctx context.Context, k *Keys, client, behind string, part int) (Roll, error) {
	reply, err := c.Run(ctx, roll[k.family], k, []string{"", client, behind, strconv.Itoa(part)}).ToArray()
	if err != nil {
		return Roll{}, err
	}
	if len(reply) == 1 {
		return Roll{Gone: true}, nil
	}
	if len(reply) < 4 {
		return Roll{}, odd(reply)
	}
	r := Roll{Entries: make([]string, 0, len(reply)-4)}
	var errs [4]error
	r.Now, errs[0] = count(&reply[0])
	r.After, errs[1] = count(&reply[1])
	r.Length, errs[2] = count(&reply[2])
	r.End, errs[3] = reply[3].ToString()
	for _, m := range reply[4:] {
		entry, err := m.ToString()
		if err != nil {
			return Roll{}, errors.Join(ErrReply, err)
		}
		r.Entries = append(r.Entries, entry)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return Roll{}, errors.Join(ErrReply, err)
	}
	if r.End != "" {
		r.Read = int64(part)
	}
	if k.family != Locks { // holders of the others share a token, or have none
		r.After = 0
	}
	return r, nil
}
