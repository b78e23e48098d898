package latchkeyweb

import (
	"bytes"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// rendered is what a page has shown last, for all who look at the same.
type rendered struct {
	mu   sync.Mutex
	of   time.Time // the look
	text []byte
}

// live tells a browser what has changed, once a second, as server-sent events: each has the whole of what is shown.
func (p *page) live(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if _, ok := titles[query.Get("page")]; !ok {
		http.NotFound(w, r)
		return
	}
	p.eye.enter() //nolint:contextcheck // what it begins is for all who look
	defer p.eye.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep it
	control := http.NewResponseController(w)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	var last []byte
	for {
		text := p.current(r, query)
		if !bytes.Equal(text, last) {
			const patient = 30 * time.Second // a browser that reads nothing
			_ = control.SetWriteDeadline(time.Now().Add(patient))
			if _, err := w.Write(event(text)); err != nil || control.Flush() != nil {
				return
			}
			last = text
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// current is what a page shows now. All who look at the same are given the same.
func (p *page) current(r *http.Request, query url.Values) []byte {
	key := encode(query.Get("page"), query)
	p.eye.mu.Lock()
	of := p.eye.rendered[key]
	if of == nil {
		const most = 1000 // searches
		if len(p.eye.rendered) >= most {
			p.eye.rendered = map[string]*rendered{}
		}
		of = &rendered{}
		p.eye.rendered[key] = of
	}
	p.eye.mu.Unlock()
	of.mu.Lock()
	defer of.mu.Unlock()
	if time.Since(of.of) < pause-pause/10 { // tickers are not exact
		return of.text
	}
	v, _ := p.view(r.Context(), query.Get("page"), query)
	of.of, of.text = time.Now(), render(v, "main")
	return of.text
}

// event is a text as an event.
func event(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\r\n"))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}
