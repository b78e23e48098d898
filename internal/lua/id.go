package lua

import (
	"fmt"
	"strconv"
	"strings"
)

// Owner returns the owner id of a tenure, without a secret.
func Owner(client string, n uint64) string {
	var buffer [64]byte
	return string(strconv.AppendUint(append(append(buffer[:0], client...), ':'), n, 10))
}

// Secrets is how many secrets there are: a number with one has nine more digits at its end.
const Secrets = 1_000_000_000

const secretDigits = 9

// OwnerWith is Owner with a secret in the number, less than [Secrets].
func OwnerWith(client string, n uint64, secret uint32) string {
	var buffer [64]byte
	return string(appendNumber(append(append(buffer[:0], client...), ':'), n, secret))
}

// Number is the number of an id with a secret, as it stands behind the client.
func Number(n uint64, secret uint32) string {
	var buffer [32]byte
	return string(appendNumber(buffer[:0], n, secret))
}

func appendNumber(b []byte, n uint64, secret uint32) []byte {
	b = strconv.AppendUint(b, n, 10)
	end := len(b)
	b = strconv.AppendUint(b, uint64(secret)+Secrets, 10) // one digit more than a secret has
	return append(b[:end], b[end+1:]...)
}

// parseNumber undoes Number. The secret is 0 for a number without one.
func parseNumber(text string) (n uint64, secret uint32, ok bool) {
	if len(text) > secretDigits {
		s, err := strconv.ParseUint(text[len(text)-secretDigits:], 10, 32)
		if err != nil {
			return 0, 0, false
		}
		text, secret = text[:len(text)-secretDigits], uint32(s)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, secret, err == nil
}

// Entry is what an entry of a queue says.
type Entry struct {
	Owner   string
	Permits int  // for how many it waits; 0: for a lock
	Shared  bool // for the half of a read-write lock that others may hold too
}

// ParseEntry reads an entry of a queue. If no client of ours writes such a text, the error is ErrReply, and nothing of
// the text is returned. The same is true of more permits than there can be.
func ParseEntry(entry string) (Entry, error) {
	fields := strings.Split(entry, ":")
	if len(fields) != 5 || fields[0] != Version {
		return Entry{}, fmt.Errorf("%w: queue entry %q", ErrReply, entry)
	}
	demand := fields[4]
	flags := strings.TrimLeft(demand, "0123456789")
	n, err := strconv.ParseInt(demand[:len(demand)-len(flags)], 10, 32)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: queue entry %q", ErrReply, entry)
	}
	return Entry{Owner: fields[1] + ":" + fields[2], Permits: int(n), Shared: strings.Contains(flags, "s")}, nil
}

// IsOwner reports whether a text is an owner id of ours.
func IsOwner(text string) bool {
	client, number, _ := strings.Cut(text, ":")
	_, _, ok := parseNumber(number)
	return ok && client != ""
}

// NumberOf returns the number of an owner id of ours, and 0 of another one.
func NumberOf(owner string) uint64 {
	_, number, _ := strings.Cut(owner, ":")
	n, _, _ := parseNumber(number)
	return n
}

// ClientOf returns the client of an owner id of ours. Of another id it returns what stands before the first
// colon.
func ClientOf(owner string) string {
	client, _, _ := strings.Cut(owner, ":")
	return client
}
