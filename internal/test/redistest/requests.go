package redistest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Requests of the scripts, as a [Proxy] sees them. A script is known by its name.

// IsScript reports whether a request runs a script.
func IsScript(request string) bool { return strings.Contains(request, "EVAL") }

// Runs reports whether a request runs one of these scripts, which are named as by [lua.NameOf]. Others may be
// sent with it.
func Runs(request string, names ...string) bool {
	for _, name := range scripts(request) {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// scripts are the names of those that a request runs.
func scripts(request string) (names []string) {
	for {
		_, rest, found := strings.Cut(request, "\r\nEVAL")
		if !found {
			return names
		}
		known := strings.HasPrefix(rest, "SHA\r\n$")
		_, rest, _ = strings.Cut(rest, "\r\n$")
		length, rest, _ := strings.Cut(rest, "\r\n")
		n, err := strconv.Atoi(length)
		if err != nil || n > len(rest) { // the rest of it comes later
			return names
		}
		sha := rest[:n]
		if !known {
			sha = lua.SHA(sha)
		}
		names = append(names, lua.NameOf(sha))
		request = rest[n:]
	}
}

// IsAcquire is for an acquire of a lock, of a read-write lock or of permits, or an offer.
func IsAcquire(request string) bool {
	return Runs(request, "lock/acquire", "lock/offer", "rwlock/acquire", "rwlock/offer") ||
		Runs(request, "permit/trade") && (strings.Contains(request, "\r\nfirst") || strings.Contains(request, "\r\nagain") || strings.Contains(request, "\r\ntry"))
}

// IsAgain is for a re-check.
func IsAgain(request string) bool {
	return IsAcquire(request) && strings.Contains(request, "\r\nagain")
}

// IsRelease is for all that gives back a lock or a read-write lock: a release, a cancel, a downgrade.
func IsRelease(request string) bool {
	return Runs(request, "lock/release", "rwlock/release", "shared/leave", "rwlock/downgrade")
}

// IsRenewal is for the renewal of leases.
func IsRenewal(request string) bool {
	return Runs(request, "lock/renew", "permit/renew", "rwlock/renew")
}
