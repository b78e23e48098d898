package chromium

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	latchkeyweb "github.com/latchkey-go/latchkey/web"
)

// browser is a Chromium that looks at a page.
type browser struct {
	t    *testing.T
	ctx  context.Context
	base string
}

// look starts one.
func look(t *testing.T, base string) *browser {
	t.Helper()
	found := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			found = path
			break
		}
	}
	if found == "" {
		redistest.Lacks(t, "chromium", "a Chromium on the PATH")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(found), chromedp.NoSandbox)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(func() { end(); stop() })
	b := &browser{t: t, ctx: ctx, base: base}
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("about:blank"))) // it lives as long as this context
	return b
}

// within limits what is done.
func (b *browser) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, locktest.Long)
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

func (b *browser) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base+path), chromedp.WaitVisible(chromedp.CSS("main h1")))
}

// eval returns the value of an expression.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return value
}

func (b *browser) text() string {
	b.t.Helper()
	return eval[string](b, "document.body?.innerText ?? ''")
}

// says waits until the page says something, without being loaded anew.
func (b *browser) says(text string) {
	b.t.Helper()
	locktest.Eventually(b.t, "the page says "+text, func() bool { return strings.Contains(b.text(), text) })
}

// click clicks what has this text.
func (b *browser) click(text string) {
	b.t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(b.t, err)
	eval[bool](b, "window.before = true")
	locktest.Eventually(b.t, text+" is there", func() bool {
		return eval[bool](b, fmt.Sprintf(`(() => { const e = [...document.querySelectorAll('a, button')].find(e => e.innerText.trim() === %s); e?.click(); return !!e })()`, quoted))
	})
	locktest.Eventually(b.t, "another page", func() bool { return !eval[bool](b, "!!window.before") })
	b.do(chromedp.WaitVisible(chromedp.CSS("main h1")))
}

// seen is how the browser shows pages: how wide, and whether dark.
func (b *browser) seen(width, height int64, scheme string) {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(b.t, err)
	b.do(chromedp.EmulateViewport(width, height))
}

// picture keeps a picture for docs/web.md, with LATCHKEY_UPDATE.
func (b *browser) picture(name string) {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NotEmpty(b.t, png)
	if updates() {
		require.NoError(b.t, os.WriteFile(filepath.Join("..", "..", "docs", "pictures", name+".png"), png, 0o644)) //nolint:gosec // all may read it
	}
}

func updates() bool { return os.Getenv("LATCHKEY_UPDATE") != "" }

// served is the page of a server, on which 8 processes work.
func served(t *testing.T) (*redistest.Server, *latchkey.Client, string) {
	t.Helper()
	s := redistest.NewProcess(t)
	c := locktest.ClientOf(t, s, latchkey.WithLabel("the page"))
	page, err := latchkeyweb.Handler(c, latchkeyweb.WithActions(func(*http.Request, latchkeyweb.Action) (string, error) { return "alice", nil }))
	require.NoError(t, err)
	web := httptest.NewServer(page)
	t.Cleanup(func() {
		web.CloseClientConnections() // of pages that are still looked at
		web.Close()
	})
	fleet(t, s, 8)
	return s, c, web.URL + "/"
}

// A person looks at all pages, takes a lock away, pauses a job, and sees that Redis is away and back.
func TestPages(t *testing.T) {
	s, c, base := served(t)
	b := look(t, base)
	b.seen(1280, 800, "light")
	b.open("")
	b.says("orders:42")
	b.says("charge order 42")
	b.says("hand-offs a second over")
	before := b.text()
	locktest.Eventually(t, "it changes by itself", func() bool { return b.text() != before })
	for _, name := range []string{wicked, arabic, long} {
		require.Contains(t, b.text(), name)
	}
	if updates() {
		locktest.Eventually(t, "the line says something", func() bool { return regexp.MustCompile(`hand-offs a second over [2-5]\d s`).MatchString(b.text()) })
	}
	b.picture("web-now")

	b.click("orders:42")
	b.says("It renews its lease.")
	b.says("7 wait, the next one first")
	b.picture("web-name")
	holder := eval[string](b, "document.querySelector('tbody th').innerText")
	b.click("Take it away …")
	b.says("two may hold it")
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=why]"), "it hangs"))
	b.click("Do it")
	b.says("It was taken away.")
	b.click("Back to orders:42")
	locktest.Eventually(t, "another one has it", func() bool {
		return eval[string](b, "document.querySelector('tbody th')?.innerText ?? ''") != holder
	})
	b.says("by alice: it hangs")

	b.open("jobs")
	b.says("send-mails")
	b.says("scheduler")
	locktest.Eventually(t, "a run has failed", func() bool { return eval[int](b, "document.querySelectorAll('.strip .failed').length") > 0 })
	b.picture("web-jobs")
	b.click("send-mails")
	b.says("smtp: connection refused")
	b.click("Pause …")
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=why]"), "the mail server moves"))
	b.click("Do it")
	b.says("It is paused.")
	b.open("jobs")
	b.says("by alice: the mail server moves")
	paused, err := c.Paused(t.Context(), "send-mails")
	require.NoError(t, err)
	require.Equal(t, "alice", paused.By)
	b.click("send-mails")
	b.click("Resume …")
	b.click("Do it")
	b.says("It goes on")

	b.open("deadlocks")
	b.says("Each waits for what the next one holds")
	require.Equal(t, 3, eval[int](b, "document.querySelectorAll('svg circle').length"))
	b.picture("web-deadlocks")
	b.open("clients")
	b.says("importer-8")
	b.open("doctor")
	b.says("is taken and given back")

	b.open("")
	b.says("stock:7781")
	s.Kill()
	b.says("Redis cannot be looked at since")
	require.Contains(t, b.text(), "orders:42", "what was seen last")
	s.Start(t)
	locktest.Eventually(t, "it is back", func() bool { return !strings.Contains(b.text(), "cannot be looked at") })
	b.says("stock:7781")
}

// What stands in Redis is text: nothing of it runs, and nothing is loaded from elsewhere.
func TestNothingRuns(t *testing.T) {
	_, _, base := served(t)
	b := look(t, base)
	for _, path := range []string{"", "clients", "jobs", "deadlocks", "name?n=" + strings.NewReplacer("<", "%3C", ">", "%3E", `"`, "%22").Replace(wicked)} {
		b.open(path)
		if path == "" {
			b.says(wicked)
		}
		require.NotEqual(t, "owned", eval[string](b, "document.title"))
		require.Empty(t, eval[[]string](b, "performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin))"))
	}
}

// It can be used at 380 pixels and on a wide screen, light and dark, by keyboard, and axe finds nothing serious.
func TestAll(t *testing.T) {
	_, _, base := served(t)
	b := look(t, base)
	axe := axeSource(t)
	for _, as := range []struct {
		name   string
		width  int64
		scheme string
	}{{"narrow", 380, "dark"}, {"wide", 1600, "light"}, {"dark", 1280, "dark"}} {
		b.seen(as.width, 800, as.scheme)
		for _, path := range []string{"", "name?n=orders:42", "jobs", "deadlocks", "clients", "doctor", "act?do=unlock&n=orders:42&token=1"} {
			b.open(path)
			if path == "" || path == "clients" {
				b.says("importer-")
			}
			require.LessOrEqual(t, eval[int](b, "document.documentElement.scrollWidth"), int(as.width), "%s is not wider than the screen: %s", path, as.name)
			if axe == "" {
				continue
			}
			eval[bool](b, axe+";true")
			ctx, cancel := b.within()
			found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](
				`axe.run().then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact)).map(v => v.id + ': ' + v.nodes.map(n => n.html).join(' ')))`,
				chromedp.EvalAwaitPromise,
			))
			cancel()
			require.NoError(t, err)
			require.Empty(t, found, "%s, %s", path, as.name)
		}
		if as.name == "dark" {
			b.open("")
			b.says("stock:7781")
			b.picture("web-" + as.name)
		}
	}
	// By keyboard: to the search, a text, and the first name that is found.
	b.open("")
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=q]"), "invoices\r"))
	locktest.Eventually(t, "it searches", func() bool { return strings.Contains(eval[string](b, "location.search"), "q=invoices") })
	b.says("invoices/2026-11")
	require.NotContains(t, b.text(), "stock:7781")
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=q]"), "\t\t\t\t\r")) // past the kind, Show, and Show all
	locktest.Eventually(t, "it opens the name", func() bool { return strings.HasSuffix(eval[string](b, "location.pathname"), "/name") })
}
