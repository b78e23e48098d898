package explore_test

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // as Redis names scripts
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// frame is one request, or one answer or message of the server, as it is on the wire.
type frame struct {
	raw   []byte
	words []string // all strings and numbers in it, in order
	push  bool
	free  bool // of an answer: its request was one that goes through at once
}

// readFrame reads one value of RESP.
func readFrame(r *bufio.Reader) (f frame, err error) {
	err = f.read(r, true)
	return f, err
}

func (f *frame) read(r *bufio.Reader, first bool) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	f.raw = append(f.raw, line...)
	kind, text := line[0], strings.TrimSuffix(string(line[1:]), "\r\n")
	f.push = f.push || first && kind == '>'
	switch kind {
	case '$', '=', '!':
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return err
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		f.raw = append(f.raw, body...)
		f.words = append(f.words, string(body[:n]))
	case '*', '>', '~', '%', '|':
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if kind == '%' || kind == '|' {
			n *= 2
		}
		for range n {
			if err := f.read(r, false); err != nil {
				return err
			}
		}
	case '+', '-', ':', '_', ',', '#', '(':
		f.words = append(f.words, text)
	default:
		return errors.New("no RESP: " + string(line))
	}
	return nil
}

// isScript says that a request runs a script. All others go through at once, but for those that subscribe.
func (f *frame) isScript() bool { return len(f.words) > 0 && strings.HasPrefix(f.words[0], "EVAL") }

func (f *frame) subscribes() bool {
	return len(f.words) > 0 && strings.HasSuffix(strings.ToUpper(f.words[0]), "SUBSCRIBE")
}

// isFree says that a frame from the server goes through at once: a health check, or the answer to a request
// that did.
func (f *frame) isFree() bool {
	if !f.push {
		return f.free
	}
	return len(f.words) == 3 && strings.HasPrefix(f.words[2], "1 p ")
}

// link is one connection of a client. What either end sends stays here until the search lets it through.
type link struct {
	of       int      // the client
	mine     net.Conn // our end of the client's connection
	server   net.Conn
	network  *network // whose mutex guards what follows
	inbox    bool     // it has subscribed
	asked    []frame  // not run yet
	said     []frame  // not delivered yet
	awaited  []bool   // of the requests that were run and not answered: which go through at once
	broken   bool     // the client's end is closed
	isClosed bool
}

// network is between the clients and the server. Its mutex guards the links.
type network struct {
	mu    sync.Mutex
	links []*link
	dead  map[int]bool // clients that cannot connect
	wakes chan struct{}
	done  sync.WaitGroup
}

func newNetwork() *network { return &network{dead: map[int]bool{}, wakes: make(chan struct{}, 1)} }

// dial connects a client.
func (n *network) dial(client int, server net.Conn) (net.Conn, error) {
	theirs, mine := net.Pipe()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead[client] {
		_ = server.Close()
		return nil, errors.New("the process is dead")
	}
	l := &link{of: client, mine: mine, server: server, network: n}
	n.links = append(n.links, l)
	n.done.Go(func() {
		l.gather(mine, func(f frame) { l.inbox = l.inbox || f.subscribes(); l.asked = append(l.asked, f) })
	})
	n.done.Go(func() { l.gather(server, l.hear) })
	return theirs, nil
}

// gather keeps what one end sends.
func (l *link) gather(from net.Conn, keep func(frame)) {
	r := bufio.NewReaderSize(from, 1<<12)
	for {
		f, err := readFrame(r)
		l.network.mu.Lock()
		if err == nil {
			keep(f)
		} else if from == l.mine {
			l.breaks() // its end, or ours
		}
		l.network.mu.Unlock()
		select {
		case l.network.wakes <- struct{}{}:
		default:
		}
		if err != nil {
			if from == l.server {
				_ = l.mine.Close()
			}
			return
		}
	}
}

// hear keeps an answer or a message of the server.
func (l *link) hear(f frame) {
	if !f.push && len(l.awaited) > 0 {
		f.free, l.awaited = l.awaited[0], l.awaited[1:]
	}
	if f.push && len(f.words) == 3 && strings.HasSuffix(strings.ToLower(f.words[0]), "subscribe") {
		f.words = f.words[:1]
	}
	if !l.broken {
		l.said = append(l.said, f)
	}
}

// run has the server take the first request. free: it goes through at once, and so does its answer.
func (l *link) run(free bool) {
	l.network.mu.Lock()
	f := l.asked[0]
	l.asked = l.asked[1:]
	if !f.subscribes() {
		l.awaited = append(l.awaited, free)
	}
	l.network.mu.Unlock()
	_, _ = l.server.Write(f.whole())
}

// texts are those of the scripts that clients have sent, by their SHA-1.
var texts sync.Map

// whole is a request with the text of its script: each server is a new one, which knows none.
func (f *frame) whole() []byte {
	switch {
	case f.isScript() && f.words[0] == "EVAL":
		texts.Store(fmt.Sprintf("%x", sha1.Sum([]byte(f.words[1]))), f.words[1])
	case f.isScript():
		if text, ok := texts.Load(f.words[1]); ok {
			words := append([]string{"EVAL", text.(string)}, f.words[2:]...)
			b := fmt.Appendf(nil, "*%d\r\n", len(words))
			for _, w := range words {
				b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
			}
			return b
		}
	}
	return f.raw
}

// deliver has the client read the first of what the server has sent.
func (l *link) deliver() {
	l.network.mu.Lock()
	f := l.said[0]
	l.said = l.said[1:]
	l.network.mu.Unlock()
	_, _ = l.mine.Write(f.raw)
}

// cut ends a connection for its client. What was sent and not run may still run: those requests stay. What
// was not read is lost. A server that does not read the rest knows at once that nobody subscribes here.
func (l *link) cut() {
	_ = l.mine.Close()
	l.network.mu.Lock()
	l.breaks()
	none := len(l.asked) == 0
	l.network.mu.Unlock()
	if none {
		l.end()
	}
}

// breaks keeps of a connection whose end is closed what may still run. The network's mutex is held.
func (l *link) breaks() {
	l.broken, l.said = true, nil
	l.asked = slices.DeleteFunc(l.asked, func(f frame) bool { return l.inbox || !f.isScript() })
}

// end closes the server's side as well.
func (l *link) end() {
	l.network.mu.Lock()
	l.isClosed, l.asked = true, nil
	l.network.mu.Unlock()
	_ = l.server.Close()
}

// text is a frame in words that do not differ from one run to the next: see names.
func (f *frame) text(n *names) string {
	var b bytes.Buffer
	words := f.words
	if f.isScript() && len(words) > 3 {
		b.WriteString(words[1][:min(6, len(words[1]))])
		words = words[3:]
	}
	for _, w := range words {
		b.WriteByte(' ')
		b.WriteString(n.plain(w))
	}
	return b.String()
}
