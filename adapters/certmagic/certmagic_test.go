package latchkeycertmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	host "github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/latchkey-go/latchkey"
	latchkeycertmagic "github.com/latchkey-go/latchkey/adapters/certmagic"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// long is for what happens sooner, on however busy a machine.
const long = 20 * time.Second

// process is a locker with a client of its own, as another process has it.
func process(t *testing.T, s *redistest.Server, opts ...latchkey.LockOption) (*latchkeycertmagic.Locker, *latchkey.Client) {
	t.Helper()
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	l, err := latchkeycertmagic.New(c, opts...)
	require.NoError(t, err)
	return l, c
}

// waits awaits that one waits in Redis for the lock of a name.
func waits(t *testing.T, c *latchkey.Client, name string) {
	t.Helper()
	lock, err := rlock.New(c, latchkeycertmagic.Key(name))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		state, err := lock.Inspect(t.Context())
		return err == nil && state.Waiting == 1
	}, long, 5*time.Millisecond)
}

// issuer is a certificate authority that counts.
type issuer struct {
	key    *ecdsa.PrivateKey
	issued atomic.Int64
	before func() // each issue
}

func (*issuer) IssuerKey() string { return "counting" }

func (i *issuer) Issue(_ context.Context, request *x509.CertificateRequest) (*host.IssuedCertificate, error) {
	n := i.issued.Add(1)
	i.before()
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(n), Subject: pkix.Name{CommonName: "counting"}, DNSNames: request.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, request.PublicKey, i.key)
	return &host.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

func TestTwoProcessesIssueOnce(t *testing.T) {
	for name, manage := range map[string]func(*host.Config, context.Context, []string) error{
		"ObtainCertSync": func(c *host.Config, ctx context.Context, names []string) error {
			return c.ObtainCertSync(ctx, names[0])
		},
		"ObtainCertAsync": func(c *host.Config, ctx context.Context, names []string) error { // renews the lease
			return c.ObtainCertAsync(ctx, names[0])
		},
		"ManageSync": (*host.Config).ManageSync,
	} {
		t.Run(name, func(t *testing.T) {
			s, directory, site := redistest.New(t), t.TempDir(), "shop.example.com"
			signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			require.NoError(t, err)
			_, watcher := process(t, s)
			authority := &issuer{key: signer, before: func() { waits(t, watcher, "issue_cert_"+site) }}

			var configs []*host.Config
			var lockers []*latchkeycertmagic.Locker
			for range 2 {
				l, _ := process(t, s)
				var config *host.Config
				cache := host.NewCache(host.CacheOptions{
					GetConfigForCert: func(host.Certificate) (*host.Config, error) { return config, nil },
					Logger:           zap.NewNop(),
				})
				defer cache.Stop()
				config = host.New(cache, host.Config{
					Storage: l.Storage(&host.FileStorage{Path: directory}), Issuers: []host.Issuer{authority}, Logger: zap.NewNop(),
				})
				configs, lockers = append(configs, config), append(lockers, l)
			}
			var both sync.WaitGroup
			errs := make([]error, len(configs))
			for i, config := range configs {
				both.Go(func() { errs[i] = manage(config, t.Context(), []string{site}) })
			}
			both.Wait()
			require.NoError(t, errors.Join(errs...))
			require.EqualValues(t, 1, authority.issued.Load())
			for i, config := range configs {
				require.Zero(t, lockers[i].Names())
				_, err := config.CacheManagedCertificate(t.Context(), site)
				require.NoError(t, err)
				served, err := config.GetCertificate(&tls.ClientHelloInfo{ServerName: site})
				require.NoError(t, err)
				require.EqualValues(t, 1, served.Leaf.SerialNumber.Int64())
			}
		})
	}
}

func TestUnlockFromAnotherGoroutine(t *testing.T) {
	s := redistest.New(t)
	first, _ := process(t, s)
	second, c := process(t, s)
	require.NoError(t, first.Lock(t.Context(), "a"))
	got := make(chan error, 1)
	go func() { got <- second.Lock(t.Context(), "a") }()
	waits(t, c, "a")
	done := make(chan error, 1)
	go func() { done <- first.Unlock(t.Context(), "a") }()
	require.NoError(t, <-done)
	require.NoError(t, <-got)
	require.Zero(t, first.Names())
	require.NoError(t, second.Unlock(t.Context(), "a"))
	require.Zero(t, second.Names())
	require.ErrorIs(t, second.Unlock(t.Context(), "a"), latchkey.ErrNotHeld)
	require.Zero(t, second.Names())
}

func TestOneLockerIsExclusiveToo(t *testing.T) {
	l, _ := process(t, redistest.New(t))
	var all sync.WaitGroup
	var inside, overlaps atomic.Int64
	for range 16 {
		all.Go(func() {
			for range 10 {
				if err := l.Lock(t.Context(), "a"); err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) > 1 {
					overlaps.Add(1)
				}
				inside.Add(-1)
				if err := l.Unlock(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, overlaps.Load())
	require.Zero(t, l.Names())
}

func TestTryLock(t *testing.T) {
	s := redistest.New(t)
	first, _ := process(t, s)
	second, c := process(t, s)
	ok, err := first.TryLock(t.Context(), "a")
	require.NoError(t, err)
	require.True(t, ok)
	for _, l := range []*latchkeycertmagic.Locker{first, second} {
		ok, err = l.TryLock(t.Context(), "a")
		require.NoError(t, err)
		require.False(t, ok)
	}
	require.Zero(t, second.Names())
	require.NoError(t, first.Unlock(t.Context(), "a"))
	require.Zero(t, first.Names())
	c.Close()
	ok, err = second.TryLock(t.Context(), "a")
	require.ErrorIs(t, err, latchkey.ErrClosed)
	require.False(t, ok)
	require.Zero(t, second.Names())
}

func TestLockEndsWithItsContext(t *testing.T) {
	s := redistest.New(t)
	first, _ := process(t, s)
	second, _ := process(t, s)
	require.NoError(t, first.Lock(t.Context(), "a"))
	for _, l := range []*latchkeycertmagic.Locker{first, second} { // behind itself, and behind another process
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		require.ErrorIs(t, l.Lock(ctx, "a"), context.DeadlineExceeded)
		cancel()
	}
	require.Zero(t, second.Names())
	require.Equal(t, 1, first.Names())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, first.Unlock(ctx, "a")) // is sent nevertheless
	require.NoError(t, second.Lock(t.Context(), "a"))
	require.NoError(t, second.Unlock(t.Context(), "a"))
}

// lose has a lock lost, and awaits that its locker says so.
func lose(t *testing.T, s *redistest.Server, l *latchkeycertmagic.Locker, name string) {
	t.Helper()
	require.NoError(t, l.RenewLockLease(t.Context(), name, time.Minute))
	client := s.Client(t)
	deleted, err := client.Do(t.Context(), client.B().Del().Key(latchkeycertmagic.Key(name)).Build()).AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, 1, deleted)
	require.Eventually(t, func() bool {
		err = l.RenewLockLease(t.Context(), name, time.Minute)
		return err != nil
	}, long, 5*time.Millisecond)
	require.ErrorIs(t, err, latchkey.ErrLost)
}

// lease is short, so that a loss is soon noticed.
var lease = latchkey.WithLease(300 * time.Millisecond)

func TestLostLock(t *testing.T) {
	s := redistest.New(t)
	l, c := process(t, s, lease)
	require.NoError(t, l.Lock(t.Context(), "a"))
	lose(t, s, l, "a")
	ok, err := l.TryLock(t.Context(), "a") // the name is taken until its Unlock
	require.NoError(t, err)
	require.False(t, ok)
	require.ErrorIs(t, l.Unlock(t.Context(), "a"), latchkey.ErrLost)
	require.Zero(t, l.Names())
	require.ErrorIs(t, l.RenewLockLease(t.Context(), "a", time.Minute), latchkey.ErrNotHeld)
	require.NoError(t, l.Lock(t.Context(), "a"))
	require.NoError(t, l.Unlock(t.Context(), "a"))
	require.NoError(t, c.Shutdown(t.Context()), "something is held")
}

func TestUnlockSaysThatTheLockWasLost(t *testing.T) {
	s := redistest.New(t)
	l, _ := process(t, s)
	require.NoError(t, l.Lock(t.Context(), "a"))
	client := s.Client(t)
	require.NoError(t, client.Do(t.Context(), client.B().Del().Key(latchkeycertmagic.Key("a")).Build()).Error())
	require.ErrorIs(t, l.Unlock(t.Context(), "a"), latchkey.ErrLost)
	require.Zero(t, l.Names())
}

func TestRenewLockLeaseTakesALostLockAgain(t *testing.T) {
	s := redistest.New(t)
	first, c := process(t, s, lease)
	second, _ := process(t, s)
	require.NoError(t, first.Lock(t.Context(), "a"))
	lose(t, s, first, "a")

	require.NoError(t, second.Lock(t.Context(), "a"))
	err := first.RenewLockLease(t.Context(), "a", time.Minute)
	require.ErrorIs(t, err, latchkey.ErrLost)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	require.NoError(t, second.Unlock(t.Context(), "a"))

	require.NoError(t, first.RenewLockLease(t.Context(), "a", time.Minute))
	ok, err := second.TryLock(t.Context(), "a")
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, first.Unlock(t.Context(), "a"))
	require.Zero(t, first.Names())
	require.NoError(t, c.Shutdown(t.Context()))
}

func TestNames(t *testing.T) {
	l, _ := process(t, redistest.New(t))
	names := []string{
		"", " ", "{", "}", "{}", "}{", "a{b", "*.example.com", "%", "%7B", "ä/é", "a\nb", "\x00\xff", "issue_cert_[::1]",
		strings.Repeat("a", 4096), strings.Repeat("{", 512), strings.Repeat("a", 4095) + "b",
	}
	keys := map[string]bool{}
	for _, name := range names { // all at once: each has a lock of its own
		require.NoError(t, l.Lock(t.Context(), name))
		keys[latchkeycertmagic.Key(name)] = true
	}
	require.Len(t, keys, len(names))
	require.Equal(t, len(names), l.Names())
	for _, name := range names {
		require.NoError(t, l.Unlock(t.Context(), name))
	}
	require.Zero(t, l.Names())
}

func TestInvalid(t *testing.T) {
	_, err := latchkeycertmagic.New(nil)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, c := process(t, redistest.New(t))
	_, err = latchkeycertmagic.New(c, latchkey.WithLease(-1))
	require.ErrorIs(t, err, latchkey.ErrInvalid)
}
