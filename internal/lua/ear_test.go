package lua_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// ear subscribes an inbox, and no more, as often as wanted.
type ear struct {
	t         testing.TB
	conn      net.Conn
	channel   string
	listens   bool
	confirmed chan struct{}
}

func newEar(t testing.TB, s *redistest.Server, channel string) *ear {
	conn, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	e := &ear{t: t, conn: conn, channel: channel, confirmed: make(chan struct{}, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for in := bufio.NewReader(conn); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if line[0] != '$' {
				continue
			}
			n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
			text := make([]byte, max(n, 0)+2)
			if _, err := io.ReadFull(in, text); err != nil {
				return
			}
			if word := string(text[:n]); word == "subscribe" || word == "unsubscribe" {
				e.confirmed <- struct{}{}
			}
		}
	}()
	t.Cleanup(func() { require.NoError(t, conn.Close()); <-ended })
	return e
}

func (e *ear) listen(listens bool) {
	if listens == e.listens {
		return
	}
	e.listens = listens
	word := "UNSUBSCRIBE"
	if listens {
		word = "SUBSCRIBE"
	}
	_, err := fmt.Fprintf(e.conn, "*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(word), word, len(e.channel), e.channel)
	require.NoError(e.t, err)
	<-e.confirmed
}
