package address

import (
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
)

// wellFormed are URLs with every parameter that docs/deploy.md has.
var wellFormed = []string{
	"redis://localhost:6379", "redis://user:password@host:6379/0", "rediss://host", "valkey://:password@10.0.0.1/3", "valkeys://[::1]:7000",
	"unix:///run/redis.sock?db=2", "redis://user:p%2Fss%40w%3A@host", "redis://a:1?addr=b:2&addr=[::1]:3", "redis://h?db=7&client_name=a b",
	"redis://s:26379?master_set=main", "rediss://h?skip_verify=true", "rediss://h?skip_verify", "redis://h?dial_timeout=2s&write_timeout=1m",
	"redis://h?protocol=2&client_cache=0&max_retries=0",
}

// said is what an option has of a URL.
type said struct {
	Addresses                []string
	User, Password           string
	DB                       int
	TLS, SkipVerify, Unix    bool
	ServerName, Name, Master string
	Dial, Write              int64
	RESP2, NoCache, NoRetry  bool
}

func saidBy(o rueidis.ClientOption) said {
	s := said{
		Addresses: o.InitAddress, User: o.Username, Password: o.Password, DB: o.SelectDB, Unix: o.DialCtxFn != nil,
		Name: o.ClientName, Master: o.Sentinel.MasterSet, Dial: int64(o.Dialer.Timeout), Write: int64(o.ConnWriteTimeout),
		RESP2: o.AlwaysRESP2, NoCache: o.DisableCache, NoRetry: o.DisableRetry,
	}
	if o.TLSConfig != nil {
		s.TLS, s.SkipVerify, s.ServerName = true, o.TLSConfig.InsecureSkipVerify, o.TLSConfig.ServerName
	}
	return s
}

// url is one that says that.
func (s said) url() string {
	u := url.URL{Scheme: "redis", Host: s.Addresses[0], User: url.UserPassword(s.User, s.Password)}
	if s.TLS {
		u.Scheme = "rediss"
	}
	if s.Unix {
		u.Scheme, u.Host, u.Path = "unix", "", s.Addresses[0]
	}
	q := url.Values{
		"db": {strconv.Itoa(s.DB)}, "dial_timeout": {strconv.FormatInt(s.Dial, 10) + "ns"}, "write_timeout": {strconv.FormatInt(s.Write, 10) + "ns"},
		"client_name": {s.Name}, "master_set": {s.Master}, "addr": s.Addresses[1:],
	}
	for name, set := range map[string]bool{"protocol=2": s.RESP2, "client_cache=0": s.NoCache, "max_retries=0": s.NoRetry, "skip_verify=true": s.SkipVerify} {
		if key, value, _ := strings.Cut(name, "="); set {
			q.Set(key, value)
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// malformed are URLs with a password that ends with ret, and errors about them.
var malformed = map[string]string{
	"redis://user:secret@host:port/0":            `invalid port ":port" after host`,
	"redis://user:secret@host/zero":              `invalid database number: "zero"`,
	"":                                           "the address is empty: it must be a URL as redis://host:port",
	"foo://user:secret@host":                     "the address must be a URL as redis://host:port: redis: invalid URL scheme: foo",
	"redis://user:sec ret@host/0":                "special characters of a user or a password are escaped, as %2F for /",
	"redis://user:12/ret@host:6379":              "special characters",
	"redis://user:sec/ret@host:6379":             "special characters",
	"redis://user:sec?ret@host:6379":             "special characters",
	"redis://user:sec#ret@host:6379":             "special characters",
	"redis://user:sec%ret@host:6379":             "special characters",
	"redis://user:s@ec/ret@host:6379":            "special characters",
	"user:secret@host:6379":                      "the address must be a URL as redis://host:port: ",
	"redis://user:secret@host:65536":             "port 65536 is more than 65535",
	"redis://user:secret@host/-1":                "the database number is -1",
	"redis://user:secret@host?dial_timeout=-1s":  "a timeout is negative",
	"redis://user:secret@host?write_timeout=-1s": "a timeout is negative",
	"redis://user:secret@host?addr=other":        `addr="other" is not host:port`,
	"redis://user:secret@host/a%0Ab/c":           "redis: invalid URL path: /a\ufffdb/c",
	"redis://user:secret@::1:6380":               `host "::1:6380" has a colon: an IPv6 address stands in brackets`,
	"redis://::":                                 `host "::" has a colon`,
	"unix://user:secret@":                        "the path of the socket is missing",
}

// schemeless are no URLs of servers.
var schemeless = []string{"localhost:6379", "127.0.0.1:6379", "http://localhost:6379"}

// A malformed URL is refused with a reason, which has nothing of the password.
func TestMalformed(t *testing.T) {
	for address, why := range malformed {
		_, err := Parse(address)
		require.ErrorIs(t, err, fail.ErrInvalid)
		require.ErrorContains(t, err, why)
		require.NotContains(t, err.Error(), "ret", "no part of the password")
		require.NotContains(t, err.Error(), "12", "nor is a part of it")
	}
	for _, address := range schemeless {
		_, err := Parse(address)
		require.ErrorIs(t, err, fail.ErrInvalid)
		require.ErrorContains(t, err, "latchkey: invalid argument: the address must be a URL as redis://host:port: ")
	}
}

// A URL is read or refused. One that is refused gives nothing, and an error of one short line, which is the
// same whatever the user and the password are. One that is read has addresses that can be dialled, and says
// the same when it is written and read again.
func FuzzOpen(f *testing.F) {
	for address := range malformed {
		f.Add(address)
	}
	for _, address := range append(wellFormed, schemeless...) {
		f.Add(address)
	}
	f.Add("redis://host/" + strings.Repeat("é", 1000))
	f.Fuzz(func(t *testing.T, address string) {
		option, err := Parse(address)
		if err != nil {
			require.Zero(t, saidBy(option))
			requireComplaint(t, address, err)
			return
		}
		s := saidBy(option)
		require.True(t, s.DB >= 0 && s.Dial >= 0 && s.Write >= 0, address)
		for i, server := range s.Addresses {
			if s.Unix && i == 0 {
				require.NotEmpty(t, server, address)
				continue
			}
			host, port, err := net.SplitHostPort(server)
			require.NoError(t, err, address)
			n, err := strconv.Atoi(port)
			require.True(t, host != "" && (err != nil || n <= 65535), "%q of %q", server, address)
		}
		again, err := Parse(s.url())
		require.NoError(t, err, "%q of %q", s.url(), address)
		require.Equal(t, s, saidBy(again), "%q of %q", s.url(), address)
	})
}

var schemeOf = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// requireComplaint checks the error of a URL.
func requireComplaint(t *testing.T, address string, err error) {
	t.Helper()
	require.ErrorIs(t, err, fail.ErrInvalid)
	text := err.Error()
	require.True(t, strings.HasPrefix(text, "latchkey: invalid argument: "), text)
	require.Less(t, len(text), 300)
	require.NotContains(t, text, "\n")
	require.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", text)
	at := strings.LastIndex(address, "@")
	if at < 0 {
		return
	}
	_, bare := Parse(schemeOf.FindString(address) + address[at+1:])
	if bare == nil {
		bare = errCredentials
		text = strings.TrimPrefix(text, "latchkey: invalid argument: ")
	}
	require.Equal(t, bare.Error(), text, "%q", address)
}

// A parameter that there is not is refused, with the one that may be meant.
func TestUnknownParameter(t *testing.T) {
	for address, says := range map[string]string{
		"redis://h?masterset=main":     `there is no parameter "masterset": is it master_set?`,
		"redis://h?dial_timeot=3s":     `there is no parameter "dial_timeot": is it dial_timeout?`,
		"redis://h?DB=3":               `there is no parameter "DB": is it db?`,
		"redis://h?tls=true":           `there is no parameter "tls": for TLS the URL begins with rediss://`,
		"redis://h?db=1&pool=10":       `there is no parameter "pool": there are addr, client_cache, client_name, db, `,
		"redis://u:p@h?skip_verify=1":  "skip_verify is for TLS: the URL begins with rediss://",
		"redis://h?db=1;protocol=2":    "invalid semicolon separator in query",
		"unix:///run/redis.sock?dbb=2": `is it db?`,
	} {
		_, err := Parse(address)
		require.ErrorIs(t, err, fail.ErrInvalid, address)
		require.ErrorContains(t, err, says, address)
	}
}
