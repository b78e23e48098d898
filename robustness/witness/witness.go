// Package witness has what workers write down while they run, in memory that outlives them: records, with their kinds,
// modes and results, and the words that workers and harness tell each other.
package witness

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/latchkey-go/latchkey/internal/test/redistest/shared"
	"github.com/latchkey-go/latchkey/robustness/plan"
)

// Kind is what a record is about.
type Kind int64

// The kinds.
const (
	_       Kind = iota
	Section      // a hold of a lock or of permits, or an attempt to get one
	Taking       // somebody took it away: ForceUnlock
	Setting      // a change of a capacity: N is the new number
	Command      // of plain permits or of a latch: Mode says which
	Arrival      // at a barrier
	Closing      // of a client
	Run          // of a function that runs once, for all, at a tick, or while its process leads
	Call         // of what is done once or shared: Mode says which
	Write        // with a token
)

// The modes of sections.
const (
	Alone int64 = iota
	Together
	Part // of the permits there are
)

// The results of what was asked for.
const (
	Pending int64 = iota // its process has not heard
	Done
	Refused // somebody else has it, or the context ended: nothing was done
	Unknown // it may have been done
	Lost    // of a section: it ended without a release
	Untold  // of a section: the release was not confirmed
	Closed  // by the worker, on purpose
)

// Record is what a process wrote down. Times are in ns since the epoch: the processes share a clock.
type Record struct {
	Kind     Kind  // 0: there is no record
	Object   int64 // its index
	Asked    int64 // before the call
	Begin    int64 // after it; of a section: it is granted; 0: it has not come to that
	End      int64 // of a section: the last moment at which it was seen to be trusted
	Until    int64 // of a section: as far as it could be trusted at its begin
	Leaving  int64 // of a section: it is about to be given back, and not trusted from here on; 0: it has not come to that
	Free     int64 // the release had returned, or the attempt had failed; 0: it has not come to that
	Queued   int64 // it stood in the queue by then; negative: it was queued again
	Token    int64
	Sequence int64
	N        int64 // permits, or an argument; of a run its name or tick
	Mode     int64
	Result   int64
	Extra    int64 // a second result; of a run the number of the attempt; of a call 1: it ran here
	Client   int64 // of its process; each one that is opened has a number
	Ends     int64 // 1: a section that ends by itself: a fixed lease, or a longest hold
	Several  int64 // 1: it is a part of a multi-lock, which may have had it before it was granted all
}

// most is how many records a process has room for.
const most = 300_000

// Process is what became of one process.
type Process struct {
	Serial uint64 // of all of the episode
	Doomed int64  // just before it was killed
	Killed int64  // when it had ended by that; 0: it was not killed
}

// Witness is the records of one process. They are written to memory that outlives it.
type Witness struct {
	records []Record
	used    atomic.Int64
}

// Open maps the file of a process.
func Open(path string) (*Witness, error) {
	memory, err := shared.Open(path, most*int(unsafe.Sizeof(Record{})))
	if err != nil {
		return nil, err
	}
	return &Witness{records: unsafe.Slice((*Record)(unsafe.Pointer(&memory[0])), most)}, nil
}

// Path is the file of a process.
func Path(dir string, serial uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%d.witness", serial))
}

// Close unmaps it.
func (w *Witness) Close() {
	size := len(w.records) * int(unsafe.Sizeof(Record{}))
	shared.Memory(unsafe.Slice((*byte)(unsafe.Pointer(&w.records[0])), size)).Close()
}

// All returns what was written. A process that was killed may have left a few places empty.
func (w *Witness) All() (all []*Record) {
	const gap = 100 // a process has fewer goroutines
	for n, empty := 0, 0; n < len(w.records) && empty < gap; n++ {
		if w.records[n].Kind == 0 {
			empty++
			continue
		}
		empty = 0
		all = append(all, &w.records[n])
	}
	return all
}

// Full reports whether there is no room for more.
func (w *Witness) Full() bool { return w.used.Load() > most-1000 }

// Ask writes down that something is about to be asked for.
func (w *Witness) Ask(kind Kind, object plan.Object, mode, n, client int64) *Record {
	r := &w.records[w.used.Add(1)-1]
	r.Object, r.Mode, r.N, r.Client = int64(object.Index), mode, n, client
	r.Asked = time.Now().UnixNano()
	atomic.StoreInt64((*int64)(&r.Kind), int64(kind)) // last: the process may be killed between any two of these
	return r
}

// Holding is a hold of any kind.
type Holding interface {
	Remaining() time.Duration
	Held() bool
}

// Granted writes down that a section has begun, unless it is not trusted any more.
func (r *Record) Granted(hold Holding, token, sequence int64) {
	now := time.Now()
	left := hold.Remaining()
	r.Token, r.Sequence = token, sequence
	if left <= 0 {
		atomic.StoreInt64(&r.Result, Lost)
		return
	}
	r.Until = now.Add(left).UnixNano()
	atomic.StoreInt64(&r.End, now.UnixNano())
	atomic.StoreInt64(&r.Begin, now.UnixNano()) // last
}

// Seen writes down that the section is trusted, if it is.
func (r *Record) Seen(hold Holding) {
	now := time.Now()
	left := hold.Remaining()
	if left <= 0 || !hold.Held() {
		return
	}
	atomic.StoreInt64(&r.Until, now.Add(left).UnixNano())
	atomic.StoreInt64(&r.End, now.UnixNano())
}

// Leaves writes down that the section is about to be given back. Its process may be killed when the release
// is on its way.
func (r *Record) Leaves() { atomic.StoreInt64(&r.Leaving, time.Now().UnixNano()) }

// Over writes down how the call that ends it went.
func (r *Record) Over(result int64) {
	atomic.StoreInt64(&r.Result, result)
	atomic.StoreInt64(&r.Free, time.Now().UnixNano())
}

// Answered writes down the answer of a command.
func (r *Record) Answered(result, value, extra int64) {
	r.Token, r.Extra = value, extra
	atomic.StoreInt64(&r.Result, result)
	now := time.Now().UnixNano()
	atomic.StoreInt64(&r.Free, now)
	atomic.StoreInt64(&r.Begin, now)
}

// Words is what the harness and the workers tell each other, in shared memory.
type Words struct{ memory shared.Memory }

const wordsOf = 2 // of each worker

// OpenWords maps the file of an episode.
func OpenWords(path string) (Words, error) {
	memory, err := shared.Open(path, 64*(4+wordsOf*1000))
	return Words{memory}, err
}

// Stop is not 0 once the workers are to come to an end.
func (w Words) Stop() *atomic.Int64 { return w.memory.Word(0) }

// Rotations is how often the password of the workers has changed.
func (w Words) Rotations() *atomic.Int64 { return w.memory.Word(1) }

// Finished is not 0 once a worker has come to an end.
func (w Words) Finished(worker int) *atomic.Int64 { return w.memory.Word(4 + wordsOf*worker) }

// Starve is not 0 while workers are to spin beside their work.
func (w Words) Starve() *atomic.Int64 { return w.memory.Word(3) }

// Stall is the longest time in ns for which a worker was not run, in which nothing was done to it.
func (w Words) Stall(worker int) *atomic.Int64 { return w.memory.Word(5 + wordsOf*worker) }

// String describes the record for who looks into a violation.
func (r Record) String() string {
	return fmt.Sprintf("kind %d object %d mode %d n %d asked %d queued %d begin %d end %d until %d free %d token %d seq %d result %d extra %d client %d",
		r.Kind, r.Object, r.Mode, r.N, r.Asked, r.Queued, r.Begin, r.End, r.Until, r.Free, r.Token, r.Sequence, r.Result, r.Extra, r.Client)
}
