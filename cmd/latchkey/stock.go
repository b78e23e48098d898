package main

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

// stock is what is sold: a number in Redis that every sale reads, decides on and writes. It is also a store
// that fences: it keeps the highest token it has seen and refuses writes with a smaller one.
type stock struct {
	client rueidis.Client
	left   string // key of the number
	fence  string // key of the token
}

// fenced writes the number unless the token is stale.
var fenced = rueidis.NewLuaScript(`
if tonumber(ARGV[2]) > 0 then
  if tonumber(ARGV[2]) < tonumber(redis.call('GET', KEYS[2]) or '0') then return 0 end
  redis.call('SET', KEYS[2], ARGV[2])
end
redis.call('SET', KEYS[1], ARGV[1])
return 1`)

// parse reads a URL. The demonstration talks to one server.
func parse(url string) (rueidis.ClientOption, error) {
	option, err := rueidis.ParseURL(url)
	option.ForceSingleClient, option.DisableCache = true, true
	return option, err
}

func openStock(option rueidis.ClientOption, prefix string) (*stock, error) {
	client, err := rueidis.NewClient(option)
	if err != nil {
		if client != nil {
			client.Close()
		}
		return nil, err
	}
	return &stock{client: client, left: prefix + "{stock}:left", fence: prefix + "{stock}:fence"}, nil
}

func (s *stock) close() { s.client.Close() }

func (s *stock) read(ctx context.Context) (int, error) {
	n, err := s.client.Do(ctx, s.client.B().Get().Key(s.left).Build()).AsInt64()
	return int(n), err
}

func (s *stock) write(ctx context.Context, left int, token int64) (bool, error) {
	return fenced.Exec(ctx, s.client, []string{s.left, s.fence}, []string{strconv.Itoa(left), strconv.FormatInt(token, 10)}).AsBool()
}

// fill starts over with n items.
func (s *stock) fill(ctx context.Context, n int) error {
	if err := s.client.Do(ctx, s.client.B().Del().Key(s.fence).Build()).Error(); err != nil {
		return err
	}
	return s.client.Do(ctx, s.client.B().Set().Key(s.left).Value(strconv.Itoa(n)).Build()).Error()
}

// clear removes what the demonstration left.
func (s *stock) clear(ctx context.Context) error {
	return s.client.Do(ctx, s.client.B().Del().Key(s.left, s.fence).Build()).Error()
}
