package redistest

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Strict stands between clients and a server, which it makes one that refuses scripts with keys which they
// have not declared, as Dragonfly and some managed servers do. Redis has no such setting.
type Strict struct {
	Addr string

	target  string
	running sync.WaitGroup

	mu      sync.Mutex
	texts   map[string]string // of scripts, by what Redis calls them
	links   []net.Conn
	refused []string
}

// refuse makes the server strict to those who use its Option, where LATCHKEY_STRICT asks for that. So all
// tests of primitives can be run on such servers. Those that count commands fail then.
func (s *Server) refuse(t testing.TB) {
	t.Helper()
	if os.Getenv("LATCHKEY_STRICT") == "" {
		return
	}
	s.strict = NewStrict(t, s)
	t.Cleanup(func() { require.Empty(t, s.strict.Refused()) })
}

// checked goes before the text of a script. It asks Redis itself which words of a command are keys.
const checked = `local redis = (function(redis, declared)
  local known = {}
  for _, key in ipairs(declared) do known[key] = true end
  local function undeclared(...)
    local keys = redis.pcall('COMMAND', 'GETKEYS', ...)
    for _, key in ipairs(keys.err and {} or keys) do
      if not known[key] then
        redis.pcall('PUBLISH', 'refused', table.concat({...}, ' '))
        return 'ERR script tried accessing undeclared key ' .. key
      end
    end
  end
  return setmetatable({
    call = function(...)
      local why = undeclared(...)
      if why then error(why) end
      return redis.call(...)
    end,
    pcall = function(...)
      local why = undeclared(...)
      if why then return {err = why} end
      return redis.pcall(...)
    end,
  }, {__index = redis})
end)(redis, KEYS)
`

// NewStrict returns one, closed with the test.
func NewStrict(t testing.TB, s *Server) *Strict {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Strict{Addr: listener.Addr().String(), target: s.Addr, texts: map[string]string{}}
	telling, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	_, err = io.WriteString(telling, "SUBSCRIBE refused\r\n")
	require.NoError(t, err)
	p.links = append(p.links, telling)
	from := bufio.NewReader(telling)
	_, err = readValue(from) // it listens
	require.NoError(t, err)
	p.running.Go(func() { p.told(from) })
	p.running.Go(func() { p.accept(listener) })
	t.Cleanup(func() {
		_ = listener.Close() // ends accept
		p.mu.Lock()
		for _, l := range p.links {
			_ = l.Close()
		}
		p.mu.Unlock()
		p.running.Wait()
	})
	return p
}

// Strict stands before each node: a cluster of servers that refuse scripts with undeclared keys, to clients
// with the option that is returned. refused is what scripts were refused, as [Strict.Refused].
func (c *Cluster) Strict(t testing.TB) (option func() rueidis.ClientOption, refused func() []string) {
	t.Helper()
	before := map[string]*Strict{}
	for _, node := range c.Nodes {
		before[node.Addr] = NewStrict(t, node)
	}
	option = func() rueidis.ClientOption {
		o := c.Option()
		o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", before[addr].Addr) // the nodes tell their own addresses
		}
		return o
	}
	return option, func() (all []string) {
		for _, s := range before {
			all = append(all, s.Refused()...)
		}
		return all
	}
}

// Option is the address as rueidis wants it.
func (p *Strict) Option() rueidis.ClientOption {
	return optionOf(p.Addr)
}

// Refused are the commands that scripts were refused, and whose errors they may have caught, but for the one
// by which a client finds out that it is on such a server.
func (p *Strict) Refused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.refused), func(command string) bool { return strings.HasSuffix(command, ":latchkey_probe_") })
}

func (p *Strict) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.links = append(p.links, client, server)
		p.mu.Unlock()
		p.running.Go(func() {
			defer server.Close() //nolint:errcheck // closed twice when the server goes first
			p.requests(bufio.NewReader(client), server)
		})
		p.running.Go(func() {
			defer client.Close() //nolint:errcheck // closed twice when the client goes first
			_, _ = io.Copy(client, server)
		})
	}
}

// requests passes what a client sends, with scripts that look at their keys.
func (p *Strict) requests(from *bufio.Reader, to io.Writer) {
	for {
		v, err := readValue(from)
		if err != nil {
			return
		}
		request := v.raw
		if words := v.words(); len(words) > 2 && strings.HasPrefix(strings.ToUpper(words[0]), "EVAL") {
			request = p.check(words, v.raw)
		}
		if _, err := to.Write(request); err != nil {
			return
		}
	}
}

// check is the request that runs the script behind what is before it. A script of which only the name is
// known goes as it is, and Redis does not know it.
func (p *Strict) check(words []string, raw []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := words[1]
	if strings.EqualFold(words[0], "EVAL") {
		p.texts[lua.SHA(text)] = text
	} else if text = p.texts[words[1]]; text == "" {
		return raw
	}
	words = append([]string{"EVAL", checked + text}, words[2:]...)
	return request(words)
}

// told notes what scripts were refused.
func (p *Strict) told(from *bufio.Reader) {
	for {
		v, err := readValue(from)
		if err != nil {
			return
		}
		if words := v.words(); len(words) == 3 && words[0] == "message" {
			p.mu.Lock()
			p.refused = append(p.refused, words[2])
			p.mu.Unlock()
		}
	}
}
