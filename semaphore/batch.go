package semaphore

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// batcher sends the requests of one semaphore in batches. While its scripts are under way, the requests of
// other goroutines gather. The next script carries out all of them: most of what a request costs Redis is
// the same for any number.
//
// A first request is sent at once, with the context of its caller. Those that gather are sent by a
// goroutine, for nobody's context: the callers of a batch come and go. A request of a caller that goes is
// taken out of the batch if that was not sent yet.
type batcher struct {
	client *session.Client
	pool   *pool // sends the scripts

	mu       sync.Mutex
	scripts  int // under way
	gathered []*gathered
}

// maxScripts is how many scripts of one semaphore are under way at once.
const maxScripts = 2

// gathered is a request that waits for a batch, or is in one.
type gathered struct {
	lua.Request
	weight int // how many permits it moves
	reply  rueidis.RedisMessage
	err    error
	done   chan struct{} // closed when reply and err are set
}

// do carries out a request that moves so many permits. When ctx ends before the answer it returns at once.
// Then the error is ErrUnsent if the request was certainly not sent.
func (b *batcher) do(ctx context.Context, request lua.Request, weight int) (rueidis.RedisMessage, error) {
	g := b.gather(request, weight)
	if g == nil {
		return b.sendFirst(ctx, request)
	}
	select {
	case <-g.done:
		return g.reply, g.err
	case <-ctx.Done():
	case <-b.client.Stopped.Done():
	}
	return rueidis.RedisMessage{}, b.takeOut(g)
}

// gather adds a request to the next batch. It returns nil when no script is under way: then the caller
// counts as one, and sends the request itself.
func (b *batcher) gather(request lua.Request, weight int) *gathered {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.scripts == 0 {
		b.scripts++
		return nil
	}
	g := &gathered{Request: request, weight: weight, done: make(chan struct{})}
	b.gathered = append(b.gathered, g)
	b.beginScript()
	return g
}

// sendFirst sends one request, and then has what gathered meanwhile sent.
func (b *batcher) sendFirst(ctx context.Context, request lua.Request) (rueidis.RedisMessage, error) {
	replies, err := b.pool.send(ctx, request)
	b.mu.Lock()
	b.scripts--
	b.beginScript()
	b.mu.Unlock()
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	return replies[0], nil
}

// beginScript has what gathered sent, if a script may begin. The caller holds the mutex.
func (b *batcher) beginScript() {
	if len(b.gathered) > 0 && b.scripts < maxScripts {
		b.scripts++
		b.client.Go(b.sendBatches) // it does not run once the client is closed, which the callers see
	}
}

// sendBatches sends one batch after the other until nothing has gathered.
func (b *batcher) sendBatches() {
	for batch := b.nextBatch(); batch != nil; batch = b.nextBatch() {
		requests := make([]lua.Request, len(batch))
		for i, g := range batch {
			requests[i] = g.Request
		}
		replies, err := b.pool.send(context.Background(), requests...)
		for i, g := range batch {
			if g.err = err; err == nil {
				g.reply = replies[i]
			}
			close(g.done)
		}
	}
}

// nextBatch takes what has gathered, up to a number of requests and of permits: other clients wait while
// Redis runs the script. It returns nil, and counts the script as over, when nothing has.
func (b *batcher) nextBatch() []*gathered {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for weight := 0; n < min(len(b.gathered), lua.TradeBatch) && weight < MaxPermits; n++ {
		weight += b.gathered[n].weight
	}
	if n == 0 {
		b.scripts--
		return nil
	}
	batch := slices.Clone(b.gathered[:n])
	b.gathered = slices.Delete(b.gathered, 0, n)
	return batch
}

// takeOut takes a request out that its caller gives up, and returns the error that says whether it was
// sent.
func (b *batcher) takeOut(g *gathered) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.gathered, g); i >= 0 {
		b.gathered = slices.Delete(b.gathered, i, i+1)
		return lua.ErrUnsent
	}
	return fail.ErrInterrupted
}
