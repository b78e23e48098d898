// Package address reads URLs of servers.
package address

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
)

// longestComplaint is how many bytes of an error about a URL there are at most.
const longestComplaint = 200

// errCredentials is all that is said of what stands before the last @ of a URL: it may be a part of a
// password.
var errCredentials = errors.New("what is before the @ cannot be read: special characters of a user or a password are escaped, as %2F for /")

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// Parse is rueidis.ParseURL. It also refuses what no connection can be made with, and unknown parameters. A URL
// that it refuses gives no configuration at all. The error is one line, and has nothing of a user or a password,
// however they are written.
func Parse(address string) (rueidis.ClientOption, error) {
	option, err := read(address)
	if err == nil {
		return option, nil
	}
	if at := strings.LastIndex(address, "@"); at >= 0 {
		address = scheme.FindString(address) + address[at+1:]
		if _, err = read(address); err == nil {
			err = errCredentials
		}
	}
	if malformed := new(url.Error); errors.As(err, &malformed) {
		err = malformed.Err // without the URL
	}
	text := identity.Printable(err.Error())
	switch {
	case address == "": // as of a variable that is not set
		text = "the address is empty: it must be a URL as redis://host:port"
	case !strings.Contains(address, "://") || strings.Contains(text, "URL scheme"):
		text = "the address must be a URL as redis://host:port: " + text
	}
	if len(text) > longestComplaint {
		text = strings.ToValidUTF8(text[:longestComplaint], "") + "…"
	}
	return rueidis.ClientOption{}, fmt.Errorf("latchkey: %w: %s", fail.ErrInvalid, text)
}

// read is rueidis.ParseURL, and refuses what that takes and no connection can be made with.
func read(address string) (rueidis.ClientOption, error) {
	option, err := rueidis.ParseURL(address)
	if err != nil {
		return option, err
	}
	if option.SelectDB < 0 {
		return option, fmt.Errorf("the database number is %d", option.SelectDB)
	}
	if option.Dialer.Timeout < 0 || option.ConnWriteTimeout < 0 {
		return option, errors.New("a timeout is negative")
	}
	u, err := url.Parse(address)
	if err != nil {
		return option, err
	}
	if err := checkParameters(u); err != nil {
		return option, err
	}
	if u.Scheme == "unix" {
		if option.InitAddress[0] == "" {
			return option, errors.New("the path of the socket is missing, as in unix:///run/redis.sock")
		}
		return option, nil
	}
	if strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "[") { // rueidis would lose the port
		return option, fmt.Errorf("host %q has a colon: an IPv6 address stands in brackets", u.Host)
	}
	for _, further := range u.Query()["addr"] { // rueidis takes the first host for what it cannot read here
		if host, port, err := net.SplitHostPort(further); err != nil || host == "" || port == "" {
			return option, fmt.Errorf("addr=%q is not host:port", further)
		}
	}
	for _, server := range option.InitAddress {
		_, port, err := net.SplitHostPort(server)
		if err != nil {
			return option, err
		}
		if _, err := strconv.ParseUint(port, 10, 16); errors.Is(err, strconv.ErrRange) { // others are names of services
			return option, fmt.Errorf("port %s is more than 65535", port)
		}
	}
	return option, nil
}

// parameters are what a URL may have behind the question mark.
var parameters = []string{
	"addr", "client_cache", "client_name", "db", "dial_timeout", "master_set", "max_retries", "protocol", "skip_verify", "write_timeout",
}

// checkParameters refuses what rueidis would pass over.
func checkParameters(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case slices.Contains(parameters, name):
		case strings.EqualFold(name, "tls"), strings.EqualFold(name, "ssl"):
			return fmt.Errorf("there is no parameter %q: for TLS the URL begins with rediss://", name)
		default:
			word := strings.ToLower(name)
			nearest := slices.MinFunc(parameters, func(a, b string) int { return distance(word, a) - distance(word, b) })
			if distance(word, nearest) <= len(nearest)/2 {
				return fmt.Errorf("there is no parameter %q: is it %s?", name, nearest)
			}
			return fmt.Errorf("there is no parameter %q: there are %s", name, strings.Join(parameters, ", "))
		}
	}
	if query.Has("skip_verify") && u.Scheme != "rediss" && u.Scheme != "valkeys" {
		return errors.New("skip_verify is for TLS: the URL begins with rediss://")
	}
	return nil
}

// distance is Levenshtein's: how many bytes must be added, left out or replaced to make one word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0]++
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, replaced)
		}
	}
	return row[len(b)]
}
