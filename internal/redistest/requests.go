package redistest

import (
	"regexp"
	"strings"
)

// Requests of the scripts, as a [Proxy] sees them. What tells them apart is their arguments: all scripts but
// the renewals and roll calls are told the highest token that the client has seen, in 16 digits and a space,
// or the clock as the client reckons.

const digits = `\$1[67]\r\n\d{16} ?\r\n`

var (
	floor = regexp.MustCompile(digits)

	// brief is for an acquire of a lock with as few arguments as it needs: the lease is the last one, or the
	// entry stands for the owner and the lease.
	brief = regexp.MustCompile(`(` + digits + `\$\d+\r\n\d{2,}|\r\n1:[^\r]+:0\r\n` + strings.TrimSuffix(digits, `\r\n`) + `)\r\n(\*|$)`)
)

// IsScript reports whether a request runs a script.
func IsScript(request string) bool { return strings.Contains(request, "EVAL") }

// IsAcquire is for an acquire of a lock or a read-write lock, or an offer.
func IsAcquire(request string) bool {
	return IsScript(request) && (strings.Contains(request, "\r\nfirst") || IsAgain(request) || strings.Contains(request, "\r\ntry") ||
		brief.MatchString(request))
}

// IsAgain is for a re-check.
func IsAgain(request string) bool {
	return IsScript(request) && strings.Contains(request, "\r\nagain")
}

// IsRelease is for all that gives back: a release, a cancel, a downgrade.
func IsRelease(request string) bool {
	return IsScript(request) && floor.MatchString(request) && !IsAcquire(request)
}

// IsRoll is for a script that looks which waiters of a client are in the queue. Its first argument is empty.
func IsRoll(request string) bool {
	return IsScript(request) && strings.Contains(request, "\r\n$0\r\n\r\n") && !floor.MatchString(request)
}

// IsRenewal is for the renewal of leases.
func IsRenewal(request string) bool {
	return IsScript(request) && !floor.MatchString(request) && !IsRoll(request)
}
