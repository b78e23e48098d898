package latchkeytusd_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"
	"golang.org/x/exp/slog"

	"github.com/latchkey-go/latchkey"
	latchkeytusd "github.com/latchkey-go/latchkey/adapters/tusd"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// long is for what happens sooner, on however busy a machine.
const long = 20 * time.Second

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// process is a locker with a client of its own, as another process has it.
func process(t *testing.T, s *redistest.Server, opts ...latchkey.LockOption) *latchkeytusd.Locker {
	t.Helper()
	c, err := rueidisclient.New(s.Option(), latchkey.WithCommandTimeout(100*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	l, err := latchkeytusd.New(c, opts...)
	require.NoError(t, err)
	return l
}

// lease is short, so that a loss is soon noticed.
var lease = latchkey.WithLease(300 * time.Millisecond)

// lose takes the lock of an upload away, of which its holder hears at the next renewal.
func lose(t *testing.T, s *redistest.Server, id string) {
	t.Helper()
	client := s.Client(t)
	deleted, err := client.Do(t.Context(), client.B().Del().Key(latchkeytusd.Key(id)).Build()).AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, 1, deleted)
}

// instance is a tusd of its own.
func instance(t *testing.T, l *latchkeytusd.Locker, directory string) *httptest.Server {
	t.Helper()
	composer := handler.NewStoreComposer()
	filestore.New(directory).UseIn(composer)
	l.UseIn(composer)
	h, err := handler.NewHandler(handler.Config{
		BasePath: "/files/", StoreComposer: composer, Logger: quiet, AcquireLockTimeout: long,
		GracefulRequestCompletionTimeout: 50 * time.Millisecond, // a goroutine of each request lasts that long
	})
	require.NoError(t, err)
	server := httptest.NewServer(http.StripPrefix("/files/", h))
	t.Cleanup(server.Close)
	return server
}

// answer is what an instance says.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// ask sends a request.
func ask(t *testing.T, method, url string, body io.Reader, headers ...string) (a answer) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		return answer{err: err}
	}
	request.Header.Set("Tus-Resumable", "1.0.0")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text), err}
}

// patch sends a part of an upload.
func patch(t *testing.T, url, offset string, body io.Reader) answer {
	t.Helper()
	return ask(t, http.MethodPatch, url, body, "Upload-Offset", offset, "Content-Type", "application/offset+octet-stream")
}

// within awaits what is sent.
func within[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(long):
		t.Fatalf("not %s", what)
	}
	return v
}

// hanging begins an upload of ten bytes, of which five arrive, by a request that does not end by itself.
func hanging(t *testing.T, server *httptest.Server, directory string) (id string, ended <-chan answer) {
	t.Helper()
	made := ask(t, http.MethodPost, server.URL+"/files/", nil, "Upload-Length", "10")
	require.NoError(t, made.err)
	require.Equal(t, http.StatusCreated, made.status, made.body)
	id = filepath.Base(made.header.Get("Location"))
	body, bytes := io.Pipe()
	t.Cleanup(func() { bytes.Close() })
	answers := make(chan answer, 1)
	go func() { answers <- patch(t, server.URL+"/files/"+id, "0", body) }()
	_, err := io.WriteString(bytes, "hello")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		written, err := os.ReadFile(filepath.Join(directory, id))
		return err == nil && string(written) == "hello"
	}, long, 5*time.Millisecond)
	return id, answers
}

func TestAnotherInstanceGoesOn(t *testing.T) {
	for _, way := range []string{"PATCH", "HEAD", "PATCH to the same instance"} {
		t.Run(way, func(t *testing.T) {
			s, directory := redistest.New(t), t.TempDir()
			a, b := instance(t, process(t, s), directory), instance(t, process(t, s), directory)
			if way == "PATCH to the same instance" {
				b = a
			}
			id, ended := hanging(t, a, directory)
			if way == "HEAD" {
				head := ask(t, http.MethodHead, b.URL+"/files/"+id, nil)
				require.NoError(t, head.err)
				require.Equal(t, http.StatusOK, head.status)
				require.Equal(t, "5", head.header.Get("Upload-Offset"))
			}
			rest := patch(t, b.URL+"/files/"+id, "5", strings.NewReader("world"))
			require.NoError(t, rest.err)
			require.Equal(t, http.StatusNoContent, rest.status, rest.body)
			require.Equal(t, "10", rest.header.Get("Upload-Offset"))

			interrupted := within(t, ended, "interrupted")
			require.NoError(t, interrupted.err)
			require.Equal(t, handler.ErrUploadInterrupted.HTTPResponse.StatusCode, interrupted.status)
			require.Contains(t, interrupted.body, "ERR_UPLOAD_INTERRUPTED")
			written, err := os.ReadFile(filepath.Join(directory, id))
			require.NoError(t, err)
			require.Equal(t, "helloworld", string(written))
		})
	}
}

func TestALostLockInterruptsTheUpload(t *testing.T) {
	s, directory := redistest.New(t), t.TempDir()
	a := instance(t, process(t, s, lease), directory)
	id, ended := hanging(t, a, directory)
	lose(t, s, id)
	require.Contains(t, within(t, ended, "interrupted").body, "ERR_UPLOAD_INTERRUPTED")
}

// locked locks an upload; each request to unlock it is sent.
func locked(t *testing.T, l *latchkeytusd.Locker, id string) (lock handler.Lock, requests <-chan struct{}) {
	t.Helper()
	lock, err := l.NewLock(id)
	require.NoError(t, err)
	called := make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, lock.Lock(ctx, func() { called <- struct{}{} }))
	cancel() // as tusd does
	return lock, called
}

func TestUnasked(t *testing.T) {
	s := redistest.New(t)
	a, b := process(t, s), process(t, s)
	for range 100 {
		lock, requests := locked(t, a, "x")
		require.NoError(t, lock.Unlock())
		require.Empty(t, requests)
		require.ErrorIs(t, lock.Unlock(), latchkey.ErrNotHeld)
	}
	lock, _ := locked(t, b, "x")
	require.NoError(t, lock.Unlock())
}

func TestAskedOnce(t *testing.T) {
	s := redistest.New(t)
	a, b := process(t, s), process(t, s)
	lock, requests := locked(t, a, "x")
	for _, l := range []*latchkeytusd.Locker{a, b, b} {
		other, err := l.NewLock("x")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		require.Equal(t, handler.ErrLockTimeout, other.Lock(ctx, func() { t.Error("asked to unlock what it has not") }))
		cancel()
		require.ErrorIs(t, other.Unlock(), latchkey.ErrNotHeld)
	}
	within(t, requests, "asked")
	require.NoError(t, lock.Unlock())
	require.Empty(t, requests)
}

func TestUnlockWhenAsked(t *testing.T) {
	s := redistest.New(t)
	for name, b := range map[string]*latchkeytusd.Locker{"another process": process(t, s), "the same process": nil} {
		t.Run(name, func(t *testing.T) {
			a := process(t, s)
			if b == nil {
				b = a
			}
			lock, err := a.NewLock("x")
			require.NoError(t, err)
			unlocked := make(chan error, 1)
			require.NoError(t, lock.Lock(t.Context(), func() { unlocked <- lock.Unlock() }))
			other, _ := locked(t, b, "x")
			require.NoError(t, within(t, unlocked, "unlocked"))
			require.NoError(t, other.Unlock())
		})
	}
}

func TestLost(t *testing.T) {
	s := redistest.New(t)
	lock, requests := locked(t, process(t, s, lease), "x")
	lose(t, s, "x")
	within(t, requests, "asked")
	require.ErrorIs(t, lock.Unlock(), latchkey.ErrLost)
	require.ErrorIs(t, lock.Unlock(), latchkey.ErrNotHeld)
	require.Empty(t, requests)
}

func TestClosed(t *testing.T) {
	c, err := rueidisclient.New(redistest.New(t).Option())
	require.NoError(t, err)
	l, err := latchkeytusd.New(c)
	require.NoError(t, err)
	lock, requests := locked(t, l, "x")
	c.Close()
	within(t, requests, "asked")
	_ = lock.Unlock() // releases, or says that the client is closed
	require.ErrorIs(t, lock.Lock(t.Context(), func() {}), latchkey.ErrClosed)
}

func TestServerIsAway(t *testing.T) {
	s := redistest.NewProcess(t)
	l := process(t, s)
	lock, _ := locked(t, l, "x")
	other, err := l.NewLock("y")
	require.NoError(t, err)
	s.Stop(t)
	began := time.Now()
	require.ErrorIs(t, lock.Unlock(), latchkey.ErrUnknownOutcome)
	require.Less(t, time.Since(began), 5*time.Second, "not the command timeout of 0.1 s, but the lease of 10 s")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err = other.Lock(ctx, func() {})
	require.ErrorIs(t, err, handler.ErrLockTimeout)
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	s.Continue(t)
	lock, _ = locked(t, l, "x")
	require.NoError(t, lock.Unlock())
}

// TestEndInTheMomentOfTheGrant has the context of a Lock end at any time: nothing stays locked.
func TestEndInTheMomentOfTheGrant(t *testing.T) {
	s := redistest.New(t)
	l := process(t, s)
	var granted, refused atomic.Int64
	for i := range 200 {
		lock, err := l.NewLock("x")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*5*time.Microsecond)
		switch err := lock.Lock(ctx, func() {}); err {
		case nil:
			granted.Add(1)
			require.NoError(t, lock.Unlock())
		default:
			refused.Add(1)
			var timeout handler.Error // joined with ErrUnavailable if the machine stood still
			require.ErrorAs(t, err, &timeout)
			require.Equal(t, handler.ErrLockTimeout, timeout)
		}
		cancel()
	}
	t.Log(granted.Load(), "granted,", refused.Load(), "refused")
	lock, _ := locked(t, l, "x")
	require.NoError(t, lock.Unlock())
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	defer c.Close()
	inner, err := rlock.New(c, latchkeytusd.Key("x"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		state, err := inner.Inspect(t.Context())
		return err == nil && state.Holder.Owner == "" && state.Waiting == 0
	}, long, 5*time.Millisecond)
}

func TestIDs(t *testing.T) {
	l := process(t, redistest.New(t))
	ids := []string{"", "{", "}", "{}", "a{b", "%", "%7B", "a/b+c", "ä", "\x00\xff\n", strings.Repeat("a", 4096), strings.Repeat("a", 4095) + "b"}
	keys := map[string]bool{}
	var locks []handler.Lock
	for _, id := range ids { // all at once: each has a lock of its own
		lock, _ := locked(t, l, id)
		locks, keys[latchkeytusd.Key(id)] = append(locks, lock), true
	}
	require.Len(t, keys, len(ids))
	for _, lock := range locks {
		require.NoError(t, lock.Unlock())
	}
}

func TestInvalid(t *testing.T) {
	_, err := latchkeytusd.New(nil)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
}
