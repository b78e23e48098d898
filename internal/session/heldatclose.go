package session

import (
	"sync"
	"time"
)

// HeldAtClose has the tenures that were still held when the client was closed. The code that a tenure guards may
// still run, and the code's Unlock still releases the tenure. So the connections stay open until each tenure is
// unlocked or its lease is over. The zero value is ready. Methods are safe for concurrent use.
type HeldAtClose struct {
	mu    sync.Mutex
	held  map[Tenure]time.Time // until when the lease can be trusted
	close func()               // nil: closeAfter was not called yet, or close has been called
	timer *time.Timer
}

// add takes a tenure that is about to end because the client ends.
func (h *HeldAtClose) add(t Tenure) {
	left := t.Item().Left()
	if left <= 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = map[Tenure]time.Time{}
	}
	h.held[t] = time.Now().Add(left)
}

// closeAfter calls end once no tenure is held any more. It does not wait for that.
func (h *HeldAtClose) closeAfter(end func()) {
	h.mu.Lock()
	h.close = end
	var last time.Time
	for _, until := range h.held {
		if until.After(last) {
			last = until
		}
	}
	if len(h.held) > 0 {
		h.timer = time.AfterFunc(time.Until(last), h.expire)
	}
	h.mu.Unlock()
	h.closeIfEmpty()
}

// expire forgets all tenures, because all leases are over.
func (h *HeldAtClose) expire() {
	h.mu.Lock()
	clear(h.held)
	h.mu.Unlock()
	h.closeIfEmpty()
}

func (h *HeldAtClose) closeIfEmpty() {
	h.mu.Lock()
	var end func()
	if len(h.held) == 0 {
		end, h.close = h.close, nil
		if h.timer != nil {
			h.timer.Stop()
		}
	}
	h.mu.Unlock()
	if end != nil {
		end()
	}
}

// TrustedUntil returns until when the client can trust the lease of t; the zero time if h does not have t.
func (h *HeldAtClose) TrustedUntil(t Tenure) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[t]
}

// Trusts reports whether the client can still trust the lease of t.
func (h *HeldAtClose) Trusts(t Tenure) bool { return time.Now().Before(h.TrustedUntil(t)) }

// isEmpty reports whether no tenure is held any more.
func (h *HeldAtClose) isEmpty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held) == 0
}

// Remove takes out a tenure that is over. With the last tenure it closes the connections.
func (h *HeldAtClose) Remove(t Tenure) {
	h.mu.Lock()
	delete(h.held, t)
	h.mu.Unlock()
	h.closeIfEmpty()
}
