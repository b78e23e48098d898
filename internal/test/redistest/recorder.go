package redistest

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Step is a script that ran, or a subscription.
type Step struct {
	Script     string // its name, as it was given to [NewRecorder]; empty: a subscription
	Keys, Args []string
	Reply      any // nil, a string, an int64, a [ReplyError], or a []any of these
	Messages   []Published
	Listening  []string // channels that had a subscriber when it had run
	Now        int64    // the server's clock then, in microseconds
}

// Published is a message to an inbox.
type Published struct{ Channel, Text string }

// Recorder stands between clients and a server, of which it records what the scripts do, in the order in
// which Redis runs them. So it lets through one script at a time, of all connections, and the next one only
// when it has seen what that one published, and who listens. No client subscribes in between, but a
// connection may end at any time. So a client that listens after a step did so while it ran, and none did
// that had not after the step before.
type Recorder struct {
	Addr string

	target   string
	names    map[string]string // of the scripts, by SHA
	instead  map[string]string // the SHA of the script that is run, by that of another one
	listener net.Listener
	running  sync.WaitGroup

	script sync.Mutex // held while one runs
	watch  *bufio.Reader
	asks   net.Conn
	steps  chan Step
	lose   func(Step) bool // whether the reply to it is lost

	mu    sync.Mutex
	links map[*recorded]bool // whether it has subscribed
}

// recorded is a connection of a client.
type recorded struct {
	client, server net.Conn
	replies        chan value
	loses          chan bool // for each reply, whether it is lost
}

// NewRecorder returns a recorder of the scripts with these texts, by name. altered are texts to run instead
// of some. The test must receive from Steps, which is closed with the recorder. lose says of a step whether
// its reply is lost, with the connection; nil: of none.
func NewRecorder(t testing.TB, s *Server, texts, altered map[string]string, lose func(Step) bool) *Recorder {
	t.Helper()
	plain := s.Client(t)
	load := func(text string) {
		sha, err := plain.Do(t.Context(), plain.B().ScriptLoad().Script(text).Build()).ToString()
		require.NoError(t, err)
		require.Equal(t, lua.SHA(text), sha)
	}
	if lose == nil {
		lose = func(Step) bool { return false }
	}
	r := &Recorder{
		target: s.Addr, names: map[string]string{}, instead: map[string]string{}, steps: make(chan Step, 10_000),
		lose: lose, links: map[*recorded]bool{},
	}
	for name, text := range texts {
		load(text)
		r.names[lua.SHA(text)] = name
		if other, ok := altered[name]; ok {
			require.NotEqual(t, text, other, "nothing was altered in %s", name)
			load(other)
			r.instead[lua.SHA(text)] = lua.SHA(other)
		}
	}
	var err error
	r.asks, err = net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	r.watch = bufio.NewReader(r.asks)
	_, err = r.asks.Write([]byte("HELLO 3\r\nPSUBSCRIBE latchkey_inbox:*\r\n"))
	require.NoError(t, err)
	for range 2 {
		_, err := readValue(r.watch)
		require.NoError(t, err)
	}
	r.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.Addr = r.listener.Addr().String()
	r.running.Go(r.accept)
	t.Cleanup(r.Close)
	return r
}

// Steps are those that there were, in order. They are to be received all the while.
func (r *Recorder) Steps() <-chan Step { return r.steps }

// Option is the recorder's address as rueidis wants it.
func (r *Recorder) Option() rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{r.Addr}, DisableCache: true, ForceSingleClient: true, PipelineMultiplex: -1}
}

// Close ends all connections, and then Steps. It may be called again.
func (r *Recorder) Close() {
	if r.listener.Close() != nil { // it was closed before
		return
	}
	r.Kill(func(bool) bool { return true })
	r.running.Wait()
	_ = r.asks.Close()
	close(r.steps)
}

// Kill ends the connections that match, which are told by whether they have subscribed. No script is under
// way meanwhile.
func (r *Recorder) Kill(match func(subscribed bool) bool) {
	r.script.Lock()
	defer r.script.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for l, subscribed := range r.links {
		if match(subscribed) {
			l.close()
		}
	}
}

func (l *recorded) close() {
	_ = l.client.Close() // closed twice when both ends go
	_ = l.server.Close()
}

func (r *Recorder) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &recorded{client: client, server: server, replies: make(chan value), loses: make(chan bool, 1)}
		r.mu.Lock()
		r.links[l] = false
		r.mu.Unlock()
		r.running.Go(l.forward)
		r.running.Go(func() {
			r.requests(l)
			l.close()
			for range l.replies { // until forward has ended
			}
			r.mu.Lock()
			delete(r.links, l)
			r.mu.Unlock()
		})
	}
}

// forward passes on what the server says. The goroutine that sent the request is told of its reply before the
// client is, and also when the client has gone: what has run is recorded.
func (l *recorded) forward() {
	defer close(l.replies)
	defer l.close()
	from, gone := bufio.NewReader(l.server), false
	for {
		v, err := readValue(from)
		if err != nil {
			return
		}
		if v.kind != '>' || v.is.([]any)[0] == "subscribe" {
			l.replies <- v
			if <-l.loses {
				return
			}
		}
		if !gone {
			_, err := l.client.Write(v.raw)
			gone = err != nil // there will be no request after the one under way
		}
	}
}

// requests passes on what the client says, one request after the other.
func (r *Recorder) requests(l *recorded) {
	from := bufio.NewReader(l.client)
	for {
		v, err := readValue(from)
		words := v.words()
		if err != nil || len(words) == 0 {
			return
		}
		var done bool
		switch verb := strings.ToUpper(words[0]); {
		case verb == "EVALSHA" && r.names[words[1]] != "", verb == "EVAL" && r.names[lua.SHA(words[1])] != "":
			done = r.run(l, words)
		case verb == "SUBSCRIBE":
			done = r.subscribe(l, v.raw, len(words)-1)
		case strings.HasSuffix(verb, "UNSUBSCRIBE"): // a push says so, sooner or later
			_, err := l.server.Write(v.raw)
			done = err == nil
		default:
			_, done = l.call(v.raw, func(any) bool { return false })
		}
		if !done {
			return
		}
	}
}

// call sends a request and awaits the reply, which may be lost.
func (l *recorded) call(raw []byte, lost func(reply any) bool) (reply any, ok bool) {
	if _, err := l.server.Write(raw); err != nil {
		return nil, false
	}
	v, ok := <-l.replies
	if !ok {
		return nil, false
	}
	lose := lost(v.is)
	l.loses <- lose
	return v.is, !lose
}

// run runs a script, and records it.
func (r *Recorder) run(l *recorded, words []string) (ok bool) {
	r.script.Lock()
	defer r.script.Unlock()
	sha := words[1]
	if len(sha) != 40 {
		sha = lua.SHA(sha)
	}
	keys, err := strconv.Atoi(words[2])
	if err != nil {
		return false
	}
	s := Step{Script: r.names[sha], Keys: words[3 : 3+keys], Args: words[3+keys:]}
	if other := r.instead[sha]; other != "" {
		sha = other
	}
	_, ok = l.call(request(append([]string{"EVALSHA", sha}, words[2:]...)), func(reply any) bool {
		s.Reply = reply
		r.record(&s)
		return r.lose(s)
	})
	return ok
}

// subscribe subscribes to so many channels, and records it.
func (r *Recorder) subscribe(l *recorded, raw []byte, channels int) (ok bool) {
	r.script.Lock()
	defer r.script.Unlock()
	r.mu.Lock()
	r.links[l] = true
	r.mu.Unlock()
	if _, err := l.server.Write(raw); err != nil {
		return false
	}
	for range channels {
		if _, ok := <-l.replies; !ok {
			break // it may have run
		}
		l.loses <- false
	}
	r.record(&Step{})
	return true
}

// record completes a step by what the server says of it.
func (r *Recorder) record(s *Step) {
	if _, err := r.asks.Write([]byte("PUBSUB CHANNELS latchkey_inbox:*\r\nTIME\r\n")); err != nil {
		panic(err)
	}
	for n := 0; n < 2; {
		v, err := readValue(r.watch)
		if err != nil {
			panic(fmt.Errorf("the recorder's own connection: %w", err))
		}
		words := v.words()
		switch {
		case v.kind == '>':
			s.Messages = append(s.Messages, Published{words[2], words[3]})
			continue
		case n == 0:
			slices.Sort(words)
			s.Listening = words
		default:
			seconds, _ := strconv.ParseInt(words[0], 10, 64)
			micros, _ := strconv.ParseInt(words[1], 10, 64)
			s.Now = seconds*1_000_000 + micros
		}
		n++
	}
	r.steps <- *s
}

// request is one as it is on the wire.
func request(words []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}
