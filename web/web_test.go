package latchkeyweb_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
	latchkeyweb "github.com/latchkey-go/latchkey/web"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// handler is the page of a client.
func handler(t *testing.T, c *latchkey.Client, opts ...latchkeyweb.Option) http.Handler {
	t.Helper()
	h, err := latchkeyweb.Handler(c, opts...)
	require.NoError(t, err)
	return h
}

// ask sends a request.
func ask(h http.Handler, r *http.Request) (status int, text string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// get returns a page, which must be there.
func get(t *testing.T, h http.Handler, target string) string {
	t.Helper()
	status, text := ask(h, httptest.NewRequest(http.MethodGet, target, nil))
	require.Equal(t, http.StatusOK, status, text)
	return text
}

// shows waits until a page says something.
func shows(t *testing.T, h http.Handler, target, text string) (page string) {
	t.Helper()
	locktest.Eventually(t, target+" says "+text, func() bool {
		page = get(t, h, target)
		return strings.Contains(page, text)
	})
	return page
}

// held takes a lock for the rest of the test.
func held(t *testing.T, ctx context.Context, c *latchkey.Client, name string) *latchkey.Hold {
	t.Helper()
	h, err := latchkey.Must(rlock.New(c, name)).Lock(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Unlock(context.Background()) })
	return h
}

// What is in Redis is text on every page.
func TestNothingIsInjected(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := locktest.ClientOf(t, s, latchkey.WithLabel(`<b>label</b>`))
	for _, name := range []string{`<script>alert(1)</script>`, `" onmouseover="alert(1)`, "javascript:alert(1)", "قفل\u202e الطلب", strings.Repeat("long", 128), "a\x1b[31mred\xff", "a b&n=c#d"} {
		held(t, latchkey.WithNote(t.Context(), `<img src=x onerror="alert(1)">`), c, name)
	}
	h := handler(t, c, latchkeyweb.WithActions(anybody))
	now := shows(t, h, "/", "&lt;b&gt;label")
	links := regexp.MustCompile(`href="(name\?n=[^"]*)"`).FindAllStringSubmatch(now, -1)
	require.Len(t, links, 7)
	pages := []string{now, get(t, h, "/clients"), get(t, h, "/jobs"), get(t, h, "/deadlocks"), get(t, h, "/doctor")}
	for _, link := range links {
		page := get(t, h, "/"+strings.ReplaceAll(link[1], "&amp;", "&"))
		require.Contains(t, page, "It is held by process", "each link leads to its name")
		pages = append(pages, page, get(t, h, "/act?do=unlock&"+strings.TrimPrefix(link[1], "name?")))
	}
	for _, page := range pages {
		for _, bad := range []string{"<script>alert", "<img", "<b>label", `" onmouseover`, `href="javascript`, "\x1b", "\u202e", "\xff"} {
			require.NotContains(t, page, bad)
		}
		require.NotRegexp(t, `(?i)<[a-z]+(\s+[a-z-]+(="[^"]*")?)*\s+on[a-z]+=`, page, "no handler")
		require.NotContains(t, page, "style=", "the policy forbids it")
	}
}

// anybody may do everything, and says who that is.
func anybody(r *http.Request, _ latchkeyweb.Action) (string, error) {
	return r.Header.Get("X-User"), nil
}

// It works below any path, and its links lead to its own pages.
func TestMounted(t *testing.T) {
	redistest.Together(t)
	c := locktest.ClientOf(t, redistest.New(t))
	held(t, t.Context(), c, "a/b?c")
	page := handler(t, c)
	mux := http.NewServeMux()
	mux.Handle("/locks/", page)
	mux.Handle("/deep/er/", http.StripPrefix("/deep/er", page))
	server := httptest.NewServer(mux)
	defer server.Close()
	link := regexp.MustCompile(`(?:href|src|data-live)="([^"#]+)"`)
	for _, below := range []string{"/locks/", "/deep/er/"} {
		for _, path := range []string{"", "jobs", "deadlocks", "clients", "doctor", "name?n=a%2Fb%3Fc"} {
			text := fetch(t, server.URL+below+path)
			base, err := url.Parse(server.URL + below + path)
			require.NoError(t, err)
			for _, found := range link.FindAllStringSubmatch(text, -1) {
				to, err := base.Parse(strings.ReplaceAll(found[1], "&amp;", "&"))
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(to.Path, below), "%s leads to %s", base, to)
				if !strings.Contains(to.Path, "live") {
					fetch(t, to.String())
				}
			}
		}
	}
	for _, strange := range []string{"/locks/nothing", "/locks/page.go", "/locks/live?page=nothing", "/locks/%2e%2e/web.go", "/locks/..css"} {
		response, err := http.Get(server.URL + strange)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusNotFound, response.StatusCode, strange)
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	var b strings.Builder
	_, err = bufio.NewReader(response.Body).WriteTo(&b)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", url, b.String())
	require.Equal(t, "DENY", response.Header.Get("X-Frame-Options"))
	require.Contains(t, response.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'")
	return b.String()
}

// What holds, waits, runs and leads is shown with its kind.
func TestKinds(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := locktest.ClientOf(t, s, latchkey.WithLabel("a service"), (&locktest.Journal{}).Logger())
	held(t, latchkey.WithNote(t.Context(), "order 42"), c, "orders:42")
	reader, err := latchkey.Must(rwlock.New(c, "stock")).Read().Lock(t.Context())
	require.NoError(t, err)
	defer locktest.Unlock(t, reader)
	permits := latchkey.Must(semaphore.New(c, "exports"))
	require.NoError(t, permits.SetCapacity(t.Context(), 3))
	some, err := permits.Acquire(t.Context(), 2)
	require.NoError(t, err)
	defer func() { _ = some.Release(context.Background()) }()
	ctx, cancel := context.WithCancel(t.Context())
	ran, leads := make(chan struct{}, 1000), make(chan struct{})
	job, err := once.Every(c, "report", time.Second, func(context.Context, *once.Run) error {
		ran <- struct{}{}
		return errors.New("no paper")
	})
	require.NoError(t, err)
	over := make(chan struct{}, 2)
	go func() { _ = job.Run(ctx); over <- struct{}{} }()
	candidate := latchkey.Must(leader.New(c, "election"))
	go func() {
		_ = candidate.Run(ctx, func(ctx context.Context, _ leader.Term) error {
			close(leads)
			<-ctx.Done()
			return nil
		})
		over <- struct{}{}
	}()
	defer func() { cancel(); <-over; <-over }()
	<-ran
	<-leads

	h := handler(t, c)
	now := shows(t, h, "/", "order 42")
	require.Contains(t, now, "a service")
	require.Contains(t, now, "read-write lock")
	require.Contains(t, now, "leader")
	require.Contains(t, get(t, h, "/?kind=semaphore"), "exports")
	require.NotContains(t, get(t, h, "/?kind=semaphore"), "orders:42")
	require.Contains(t, get(t, h, "/?q=ORDER"), "orders:42")
	require.Contains(t, get(t, h, "/?q=nothing+such"), "Nothing that you search for")
	require.Contains(t, get(t, h, "/name?n=exports"), "1 of 3 permits free")
	require.Contains(t, get(t, h, "/name?n=free"), "It is free.")
	jobs := shows(t, h, "/jobs", "no paper")
	require.Contains(t, jobs, "election")
	require.Contains(t, get(t, h, "/name?n=report"), "job, the next tick is due in")
	require.Contains(t, shows(t, h, "/clients", "a service"), "Clients")
	require.Contains(t, get(t, h, "/doctor"), "is taken and given back")
	require.Contains(t, get(t, h, "/deadlocks"), "No deadlock")
	shows(t, h, "/name?n=orders%3A42", "It renews its lease.")
}

// Nothing can be changed unless the application allows it.
func TestActions(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	journal := &locktest.Journal{}
	c := locktest.ClientOf(t, s, journal.Logger())
	other := locktest.ClientOf(t, s)
	hold := held(t, t.Context(), other, "orders")
	form := func(h http.Handler, values url.Values, set func(*http.Request)) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "http://page.example/act", strings.NewReader(values.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-User", "alice")
		if set != nil {
			set(r)
		}
		return ask(h, r)
	}
	unlock := url.Values{"do": {"unlock"}, "n": {"orders"}, "token": {strconv.FormatInt(hold.Token(), 10)}, "why": {"it hangs"}}

	status, text := form(handler(t, c), unlock, nil)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, text, "without actions")
	require.NotContains(t, get(t, handler(t, c), "/name?n=orders"), "Take it away")

	asked := 0
	careful := handler(t, c, latchkeyweb.WithActions(func(_ *http.Request, a latchkeyweb.Action) (string, error) {
		asked++
		require.Equal(t, latchkeyweb.Action{Kind: latchkeyweb.Unlock, Name: "orders", Token: hold.Token(), Why: "it hangs"}, a)
		return "", errors.New("only on <call>")
	}))
	status, text = form(careful, unlock, nil)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, text, "only on <call>", "as plain text")
	require.Equal(t, 1, asked)

	h := handler(t, c, latchkeyweb.WithActions(anybody))
	require.Contains(t, get(t, h, "/name?n=orders"), "Take it away")
	require.Contains(t, get(t, h, "/act?"+unlock.Encode()), "two may hold it")
	require.NotContains(t, get(t, h, "/act?"+unlock.Encode()), "nothing will be done")
	require.Contains(t, get(t, h, "/act?do=unlock&n=orders&token=7"), "nothing will be done")
	for _, site := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		func(r *http.Request) { r.Header.Set("Origin", "http://other.example") },
	} {
		status, text = form(h, unlock, site)
		require.Equal(t, http.StatusForbidden, status)
		require.Contains(t, text, "another site")
	}
	for wrong, says := range map[string]string{"do": "no such action", "n": "name is missing", "token": "token is no number"} {
		bad := url.Values{"do": {"unlock"}, "n": {"orders"}, "token": {"1"}}
		bad.Set(wrong, map[string]string{"do": "explode", "n": "", "token": "x"}[wrong])
		status, text = form(h, bad, nil)
		require.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, text, says)
	}
	_, text = form(h, url.Values{"do": {"unlock"}, "n": {"orders"}, "token": {"7"}}, nil)
	require.Contains(t, text, "another one holds it now")
	require.NoError(t, hold.Err())

	_, text = form(h, unlock, nil)
	require.Contains(t, text, "It was taken away.")
	<-hold.Context().Done()
	require.ErrorIs(t, hold.Err(), latchkey.ErrLost)
	state, err := latchkey.Must(rlock.New(c, "orders")).Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, "by alice: it hangs", state.Forced.Note)
	require.Equal(t, 1, journal.Says(`who=alice why="it hangs" outcome="It was taken away."`), journal.String())
	_, text = form(h, unlock, nil)
	require.Contains(t, text, "no lock that is held")

	require.Contains(t, get(t, h, "/name?n=report"), "It is free.")
	_, text = form(h, url.Values{"do": {"pause"}, "n": {"report"}, "why": {"the database moves"}}, nil)
	require.Contains(t, text, "It is paused.")
	p, err := c.Paused(t.Context(), "report")
	require.NoError(t, err)
	require.Equal(t, "alice", p.By)
	require.Equal(t, "the database moves", p.Why)
	require.Contains(t, get(t, h, "/name?n=report"), "paused 0s ago by alice", "who has done something sees it")
	_, text = form(h, url.Values{"do": {"resume"}, "n": {"report"}}, nil)
	require.Contains(t, text, "It goes on")
	p, err = c.Paused(t.Context(), "report")
	require.NoError(t, err)
	require.Zero(t, p)
}

// Of what got no answer the page does not say that it was not done.
func TestUnknown(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	h := handler(t, locktest.ClientOf(t, s), latchkeyweb.WithActions(anybody))
	get(t, h, "/")
	s.Stop(t)
	status, text := ask(h, httptest.NewRequest(http.MethodPost, "/act?do=pause&n=report", nil))
	s.Continue(t)
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, text, "It is not known whether it was done")
}

// The page has the names of its client's prefix alone, on a cluster too, and beside Redisson.
func TestWhere(t *testing.T) {
	redistest.Together(t)
	for name, option := range map[string]func(t *testing.T) rueidis.ClientOption{
		"one server": func(t *testing.T) rueidis.ClientOption { return redistest.NewProcess(t).Option() },
		"a cluster":  func(t *testing.T) rueidis.ClientOption { return redistest.NewCluster(t).Option() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := option(t)
			c := locktest.Client(t, at, latchkey.WithKeyPrefix("shop:"), latchkey.WithRedisson())
			held(t, t.Context(), c, "orders")
			held(t, t.Context(), c, "{stock}:7")
			held(t, t.Context(), locktest.Client(t, at, latchkey.WithKeyPrefix("other:")), "secret")
			h := handler(t, c, latchkeyweb.WithActions(anybody))
			page := shows(t, h, "/", "orders")
			require.Contains(t, page, "{stock}:7")
			require.NotContains(t, page, "secret")
			require.NotContains(t, page, "shop:")
			name := get(t, h, "/name?n=orders")
			require.Contains(t, name, "It is held by")
			token := regexp.MustCompile(`token=(\d+)`).FindStringSubmatch(name)
			require.Contains(t, get(t, h, "/deadlocks"), "No deadlock")
			require.Contains(t, shows(t, h, "/clients", "web.test"), "Clients")
			_, text := ask(h, httptest.NewRequest(http.MethodPost, "/act?do=unlock&n=orders&token="+token[1], nil))
			require.Contains(t, text, "It was taken away.")
		})
	}
}

// A leader resigns, also one whose lease is so long that it finds out late. A pause that was there is not cut short.
func TestResign(t *testing.T) {
	for name, lease := range map[string]time.Duration{"a usual lease": 9 * time.Second, "a long lease": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				c := locktest.ClientOf(t, s)
				h := handler(t, c, latchkeyweb.WithActions(anybody))
				resign := func() string {
					_, text := ask(h, httptest.NewRequest(http.MethodPost, "/act?do=resign&n=election", nil))
					return text
				}
				require.Contains(t, resign(), "Nothing was done: no process leads.")
				ctx, cancel := context.WithCancel(t.Context())
				terms, over := make(chan context.Context, 10), make(chan error, 1)
				go func() {
					over <- latchkey.Must(leader.New(c, "election", leader.WithLease(lease))).Run(ctx, func(ctx context.Context, _ leader.Term) error {
						terms <- ctx
						<-ctx.Done()
						return nil
					})
				}()
				defer func() { cancel(); <-over }()
				first := <-terms
				require.Contains(t, resign(), "Its leader resigns.")
				select {
				case <-first.Done():
				case <-time.After(lease):
					require.Fail(t, "it does not resign")
				}
				require.ErrorIs(t, context.Cause(first), leader.ErrResigned)
				<-terms // it leads again
				require.NoError(t, c.Pause(t.Context(), "election", latchkey.Pause{Why: "a release"}))
				require.Contains(t, resign(), "Nothing was done: the name is paused")
				p, err := c.Paused(t.Context(), "election")
				require.NoError(t, err)
				require.Equal(t, "a release", p.Why)
				require.Zero(t, p.Until)
			})
		})
	}
}

// What makes no sense is refused.
func TestInvalid(t *testing.T) {
	_, err := latchkeyweb.Handler(nil)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	c := locktest.ClientOf(t, redistest.New(t))
	_, err = latchkeyweb.Handler(c, latchkeyweb.WithActions(nil))
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = latchkeyweb.Handler(c, nil)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	status, _ := ask(handler(t, c), httptest.NewRequest(http.MethodPost, "/jobs", nil))
	require.Equal(t, http.StatusMethodNotAllowed, status)
}

// However many look, one looks at Redis, once a second. When no page is open, none does.
func TestOneLooks(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	c := locktest.ClientOf(t, s)
	held(t, t.Context(), c, "orders")
	h := handler(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	began := time.Now()
	var viewers sync.WaitGroup
	for n := range 50 {
		page := [...]string{"", "name&n=orders", "jobs", "clients"}[n%4]
		viewers.Go(func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/live?page="+page, nil))
		})
	}
	viewers.Wait()
	looks := commands(t, s, "pubsub|channels")
	require.Positive(t, looks)
	require.LessOrEqual(t, looks, int(time.Since(began)/time.Second)+1, "fifty look, and Redis is asked as by one")
	require.LessOrEqual(t, commands(t, s, "pubsub|numsub"), int(time.Since(began)/time.Second)+1, "of a name, too")
	locktest.Eventually(t, "no one hears grants", func() bool {
		n, err := locktest.Do(t, s.Client(t), "PUBSUB", "NUMPAT").AsInt64()
		require.NoError(t, err)
		return n == 0
	})
	require.Equal(t, looks, commands(t, s, "pubsub|channels"), "no one has looked since")
}

// commands is how many of them the server has run, by the begin of their names.
func commands(t *testing.T, s *redistest.Server, name string) (n int) {
	t.Helper()
	r := s.Client(t)
	info, err := r.Do(t.Context(), r.B().Info().Section("commandstats").Build()).ToString()
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		if strings.HasPrefix(m[1], name) {
			calls, err := strconv.Atoi(m[2])
			require.NoError(t, err)
			n += calls
		}
	}
	return n
}

// While Redis is away the page says since when, and goes on by itself.
func TestRedisAway(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	c := locktest.ClientOf(t, s)
	held(t, t.Context(), c, "orders")
	h := handler(t, c)
	shows(t, h, "/", "orders")
	s.Kill()
	page := shows(t, h, "/", "Redis cannot be looked at since")
	require.Contains(t, page, "orders", "what was seen last")
	s.Start(t)
	locktest.Eventually(t, "it is back", func() bool { return !strings.Contains(get(t, h, "/"), "cannot be looked at") })
	page = shows(t, h, "/", "Nothing is held")
	require.NotContains(t, page, "role=\"alert\"")
}

// A user who may not ask for names sees that; one who may only do that sees what is held.
func TestRefused(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	held(t, t.Context(), locktest.ClientOf(t, s), "orders")
	rule := []string{"ACL", "SETUSER", "poor", "on", "nopass", "~*", "&*", "+@all", "-scan", "-psubscribe", "-pubsub"}
	require.NoError(t, locktest.Do(t, plain, rule...).Error())
	option := s.Option()
	option.Username = "poor"
	h := handler(t, locktest.Client(t, option))
	require.Contains(t, shows(t, h, "/", "cannot be looked at"), "&#39;scan&#39;")
	require.NoError(t, locktest.Do(t, plain, "ACL", "SETUSER", "poor", "+scan").Error())
	page := shows(t, h, "/", "orders")
	require.NotContains(t, page, "alert")
	require.NotContains(t, page, "hand-offs a second")
	require.Contains(t, get(t, h, "/name?n=orders"), "It is held by")
}

// A holder that has gone is told from one that lives: its process does not listen.
func TestGone(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := locktest.ClientOf(t, s)
	gone := locktest.ClientOf(t, s)
	_, err := latchkey.Must(rlock.New(gone, "orders")).Lock(t.Context())
	require.NoError(t, err)
	h := handler(t, c)
	require.NotContains(t, shows(t, h, "/name?n=orders", "Its process is connected."), "does not listen")
	require.Error(t, gone.Close(), "something is held")
	page := shows(t, h, "/name?n=orders", "Its process does not listen")
	require.Contains(t, page, `<span class="bad">does not listen</span>`)
	require.Contains(t, page, "Its lease ends in")
}

// What happens to a name while a page is open is told.
func TestStory(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := locktest.ClientOf(t, s, latchkey.WithLabel("first"))
	other := locktest.ClientOf(t, s, latchkey.WithLabel("second"))
	first := held(t, t.Context(), c, "orders")
	h := handler(t, c)
	shows(t, h, "/name?n=orders", "(first)")
	later := redistest.Begin(t, latchkey.Must(rlock.New(other, "orders")).Lock)
	shows(t, h, "/name?n=orders", "1 wait")
	locktest.Unlock(t, first)
	second := later.Granted(t)
	shows(t, h, "/name?n=orders", "It went to")
	locktest.Unlock(t, second)
	shows(t, h, "/name?n=orders", "(second), and is no longer.")
}
