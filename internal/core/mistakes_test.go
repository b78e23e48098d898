package core_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// mistake is a configuration with which a client cannot connect.
type mistake struct {
	option rueidis.ClientOption
	says   string // a part of the error's text
	passes bool   // it may be no mistake, but a server that is away
}

// mistakes are those that a server with a user "user" shows, by their names.
func mistakes(t testing.TB) map[string]mistake {
	s := redistest.NewProcess(t)
	do(t, s.Client(t), "ACL", "SETUSER", "user", "on", ">secret", "+@all", "~*", "&*")
	with := func(change func(o *rueidis.ClientOption)) rueidis.ClientOption {
		o := s.Option()
		change(&o)
		return o
	}
	at := func(address string, config *tls.Config) rueidis.ClientOption {
		return with(func(o *rueidis.ClientOption) { o.InitAddress, o.TLSConfig = []string{address}, config })
	}
	speaksTLS, speaksNone := httptest.NewTLSServer(nil), httptest.NewServer(nil)
	t.Cleanup(speaksTLS.Close)
	t.Cleanup(speaksNone.Close)
	picky := httptest.NewUnstartedServer(nil)
	picky.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12} // 1.3 refuses after the handshake
	picky.StartTLS()
	t.Cleanup(picky.Close)
	hangsUp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = hangsUp.Close() })
	go func() {
		for c, err := hangsUp.Accept(); err == nil; c, err = hangsUp.Accept() {
			_, _ = c.Read(make([]byte, 4096)) // else it is a reset now and then, which is another reason
			_ = c.Close()
		}
	}()
	narrow := redistest.NewConfigured(t, "rename-command CLIENT \"\"\nrename-command HELLO \"\"\n")
	locked := redistest.NewProcess(t)
	do(t, locked.Client(t), "CONFIG", "SET", "requirepass", "secret")
	sentinel := redistest.NewConfigured(t, fmt.Sprintf("sentinel monitor primary 127.0.0.1 %d 1\n", s.Port(t)), "--sentinel")
	trusting := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // it is about other errors
	return map[string]mistake{
		"password":    {with(func(o *rueidis.ClientOption) { o.Username, o.Password = "user", "wrong" }), "wrong user or password: WRONGPASS", false},
		"no password": {at(locked.Addr, nil), "a password is needed: NOAUTH", false},
		"master": {with(func(o *rueidis.ClientOption) {
			o.ForceSingleClient, o.InitAddress, o.Sentinel.MasterSet = false, []string{sentinel.Addr}, "other"
		}), "Sentinel does not know the master: No such master with that name", false},
		"database": {with(func(o *rueidis.ClientOption) { o.SelectDB = 99 }), "no such database: DB index is out of range", false},
		"a proxy":  {at(narrow.Addr, nil), "the server, or a proxy before it, lacks a command: unknown command", false},
		"certificate": {at(speaksTLS.Listener.Addr().String(), &tls.Config{ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}),
			"the certificate of the server is not accepted: tls: failed to verify certificate", false},
		"client certificate": {at(picky.Listener.Addr().String(), trusting), "the server refuses the TLS handshake: remote error: tls", false},
		"no TLS":             {at(speaksNone.Listener.Addr().String(), trusting), "the server does not speak TLS there: tls: first record", false},
		"no handshake":       {at(s.Addr, trusting), "redis unavailable: the TLS handshake got no answer, does the server speak TLS there?", true},
		"hangs up":           {at(hangsUp.Addr().String(), trusting), "redis unavailable: the TLS handshake got no answer, does the server speak TLS there?", true},
		"nobody":             {at("127.0.0.1:1", trusting), "redis unavailable: dial tcp 127.0.0.1:1", true},
	}
}

// What does not pass by waiting is not ErrUnavailable, and the error names it.
func TestMistakesAreNamed(t *testing.T) {
	for name, m := range mistakes(t) {
		t.Run(name, func(t *testing.T) {
			_, err := core.Open(m.option, session.DefaultOptions())
			require.ErrorContains(t, err, m.says)
			require.Equal(t, m.passes, errors.Is(err, fail.ErrUnavailable), err)
			require.True(t, strings.HasPrefix(err.Error(), "latchkey: "), err)
		})
	}
}

// An outage ends also for a user who may not send its probe.
func TestOutageOfAUserWhoMayNotProbe(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	do(t, s.Client(t), "ACL", "SETUSER", "user", "on", ">secret", "+@all", "-persist", "~*", "&*")
	p := redistest.NewProxy(t, s)
	option := p.Option()
	option.Username, option.Password = "user", "secret"
	c := open(t, option)
	verdict, lost := redistest.Once(redistest.LoseRequest, redistest.IsAcquire)
	p.Judge(verdict)
	require.NoError(t, lockLater(t, newLock(t, c, "a", true)).Granted(t).Unlock(t.Context()))
	require.EqualValues(t, 1, lost.Load())
}
