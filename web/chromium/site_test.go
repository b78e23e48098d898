package chromium

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// site is the folder into which make docs builds the site of docs/.
var site = filepath.Join("..", "..", "site")

// The site of docs/ is as a reader wants it: the drawings are drawn, the search finds, nothing is wider than the screen or
// loaded from elsewhere, and it is dark where the reader's system is. LATCHKEY_PICTURES is a folder for pictures of it.
func TestSite(t *testing.T) {
	if _, err := os.Stat(site); err != nil {
		redistest.Lacks(t, "site", "the site, which make docs builds")
	}
	files := httptest.NewServer(http.FileServer(http.Dir(site)))
	t.Cleanup(files.Close)
	b := look(t, files.URL+"/")
	for _, as := range []struct {
		name, scheme  string
		width, height int64
	}{{"light", "light", 1280, 800}, {"dark", "dark", 1280, 800}, {"narrow", "light", 380, 800}} {
		b.seen(as.width, as.height, as.scheme)
		b.openPage("")
		eval[bool](b, "(localStorage.clear(), true)") // another reader
		for _, page := range []string{"", "tutorial/", "primitives/", "primitives/fence/", "emergencies/", "operations/", "guarantees/", "protocol/"} {
			b.openPage(page)
			what := fmt.Sprint(as.name, " /", page)
			require.LessOrEqual(t, eval[float64](b, "document.documentElement.scrollWidth"), float64(as.width), what)
			require.Empty(t, eval[[]string](b, "performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin))"), what)
			dark := eval[string](b, "document.body.getAttribute('data-md-color-scheme')") == "slate"
			require.Equal(t, as.scheme == "dark", dark, what)
			if drawings := eval[float64](b, "[...document.querySelectorAll('pre.mermaid')].length"); drawings > 0 {
				locktest.Eventually(t, what+" is drawn", func() bool { return eval[float64](b, "document.querySelectorAll('pre.mermaid').length") == 0 })
			}
			b.pictureOf(as.name, page)
		}
	}
	b.seen(1280, 800, "light")
	for searched, found := range map[string]string{"stuck": "A lock is stuck", "Berlin": "once", "readiness": "Readiness", "whoami": "NOPERM in the log"} {
		b.openPage("")
		const field = "[data-md-component=search-query]"
		b.do(chromedp.Click(chromedp.CSS(field)), chromedp.SendKeys(chromedp.CSS(field), searched))
		locktest.Eventually(t, searched+" is found", func() bool {
			return strings.Contains(eval[string](b, "document.querySelector('[data-md-component=search-result]').innerText"), found)
		})
		b.pictureOf("search", searched)
	}
}

// openPage opens a page of the site, which has a heading.
func (b *browser) openPage(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base+path), chromedp.WaitVisible(chromedp.CSS("article h1")))
}

// pictureOf keeps a picture of what the browser shows, with LATCHKEY_PICTURES.
func (b *browser) pictureOf(as, page string) {
	b.t.Helper()
	folder := os.Getenv("LATCHKEY_PICTURES")
	if folder == "" {
		return
	}
	ctx, cancel := b.within()
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	name := strings.ReplaceAll(strings.Trim(page, "/"), "/", "-")
	require.NoError(b.t, os.WriteFile(filepath.Join(folder, "site-"+as+"-"+name+".png"), png, 0o600))
}
