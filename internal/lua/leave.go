package lua

import "context"

var leave = [families]*Script{
	Locks:  script(Locks, "lock/giveback.lua", "shared/leave.lua"),
	Leased: script(Leased, "permit/leased.lua", "permit/transaction.lua", "shared/leave.lua"),
	Plain:  script(Plain, "permit/plain.lua", "permit/transaction.lua", "shared/leave.lua"),

	ReadWrite: script(ReadWrite, "rwlock/grant.lua", "shared/leave.lua"),
}

// Departure is one wait that [Conn.Leave] ends.
type Departure struct {
	Owner, Entry string
	Everywhere   bool // the entry may stand in the queue more than once
}

// LeaveBatch is how many waits one script ends at most.
const LeaveBatch = 250

// Leave runs shared/leave.lua for waits on one name, the oldest first, and returns for each whether it was
// ended. seen: as for [Conn.Acquire].
func (c Conn) Leave(ctx context.Context, k *Keys, batch []Departure, seen int64) ([]bool, error) {
	args := append(make([]string, 0, 2+3*len(batch)), "", floor(seen))
	owners := make([]string, 0, len(batch))
	ended := make([]bool, len(batch))
	for i, d := range batch {
		owners = append(owners, d.Owner)
		times := "1"
		if d.Everywhere {
			times = "0"
		}
		args = append(args, d.Owner, d.Entry, times)
		ended[i] = true
	}
	left, err := c.Run(ctx, leave[k.family], k, args, owners...).AsIntSlice()
	if err != nil {
		return nil, err
	}
	for _, i := range left {
		if i < 1 || i > int64(len(batch)) {
			return nil, ErrReply
		}
		ended[i-1] = false
	}
	return ended, nil
}
