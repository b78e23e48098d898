package redisson

import (
	"encoding/binary"
	"errors"
	"os"
	"time"
)

// Record is one hold, or the wait for one. Times are those of CLOCK_MONOTONIC, and 0 until they have come.
type Record struct {
	Asked, Entered, Left, Released time.Duration
	Token                          int64 // 0: none
	Thread                         int   // from 0; the clients of a process have its threads in turn
	Shared                         bool  // others may hold beside it who share
}

// The 64-bit words of a file: a header, and for each thread another one, and its records. The headers say
// how many threads there are, how many records each has room for, and how many it has begun.
const (
	Magic    = 0x4c4b31
	Header   = 8
	PerEntry = 6
)

// Records reads the file of a process.
func Records(file string) (all []Record, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(data[8*i:])) }
	if len(data) < 8*Header || word(0) != Magic {
		return nil, errors.New(file + " has no records")
	}
	threads, capacity := int(word(1)), int(word(2))
	for n := range threads {
		begin := Header + n*(Header+capacity*PerEntry)
		for i := range int(word(begin)) {
			at := begin + Header + i*PerEntry
			all = append(all, Record{
				Asked: time.Duration(word(at)), Entered: time.Duration(word(at + 1)), Left: time.Duration(word(at + 2)),
				Token: word(at + 3), Thread: n, Shared: word(at+4) == 1, Released: time.Duration(word(at + 5)),
			})
		}
	}
	return all, nil
}
