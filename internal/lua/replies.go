package lua

import (
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// The codes of replies: what a script says in place of a number that is greater than 0, or 0. A script has
// the name behind REPLY_, for which the composer puts the number. No two mean the same to one request.
//
//	code  name      said by                     means
//	-1    BUSY      acquires, offers, takes     somebody else holds it, or waits, and the attempt may not wait
//	-2    FULL      acquires, takes             the queue is full
//	-3    GONE      offers, watches, moves      no id of the request owns the lock
//	-4    UNSET     permits                     nobody has said how many there are
//	-5    FEWER     takes of permits            there are fewer permits
//	-6    LATE      acquires, moves, baskets    the deadline was over: nothing was done
//	-6    RANGE     changes, puts of permits    there would be fewer than 0, or too many: nothing was done
//	-7    MOVING    takes of permits            the slot is moving, and the queue may be on the other side
//	-8    YOUNG     acquires of a redlock       the server has not been up for long enough
//	-9    LINGERS   acquires                    as BUSY, and the owner may linger, and was told
//	-1    PARTIES   arrivals at a barrier       others wait for another number of parties
//	-2    GIVENUP   arrivals, and their ends    it was given up, and never arrives
//	-3    ACTING    arrivals at a barrier       all parties are there, and have not gone on yet
//	-1    GREATER   leaders                     a greater token was there
const (
	replyBusy    = -1
	replyFull    = -2
	replyGone    = -3
	replyUnset   = -4
	replyFewer   = -5
	replyLate    = -6
	replyRange   = -6
	replyMoving  = -7
	replyYoung   = -8
	replyLingers = -9
	replyGreater = -1
)

// codes are the same for the composer.
var codes = map[string]int{
	"BUSY": replyBusy, "FULL": replyFull, "GONE": replyGone, "UNSET": replyUnset, "FEWER": replyFewer, "LATE": replyLate,
	"RANGE": replyRange, "MOVING": replyMoving, "YOUNG": replyYoung, "LINGERS": replyLingers,
	"PARTIES": WrongParties, "GIVENUP": GivenUp, "ACTING": Full, "GREATER": replyGreater,
}

// code is the number for a name in a script. It panics when there is none: a script is part of the program.
func code(name string) string {
	n, ok := codes[name]
	if !ok {
		panic(fmt.Sprintf("lua: there is no reply %s", name))
	}
	return fmt.Sprint(n)
}

// shown is how many bytes of a reply are shown at most.
const shown = 200

// odd is [ErrReply] with what came, so that its reader can tell who answered.
func odd[T int64 | string | rueidis.RedisMessage](reply []T) error {
	var text strings.Builder
	for _, part := range reply {
		if text.Len() > shown {
			text.WriteString(" …")
			break
		}
		switch part := any(part).(type) {
		case rueidis.RedisMessage:
			fmt.Fprintf(&text, " %.*s", shown, part.String())
		default:
			fmt.Fprintf(&text, " %v", part)
		}
	}
	return fmt.Errorf("%w, of %d parts:%q", ErrReply, len(reply), text.String())
}
