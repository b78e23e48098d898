package shared

import (
	"errors"
	"sync/atomic"
)

// Memory is a file in memory. What a process writes there the others see. Windows has it under other names,
// which nobody has needed yet: Open fails.
type Memory []byte

// Open maps so many bytes of a file, which is made when there is none.
func Open(string, int) (Memory, error) { return nil, errors.ErrUnsupported }

// Word is the n-th number of the memory.
func (m Memory) Word(int) *atomic.Int64 { panic(errors.ErrUnsupported) }

// Close unmaps it.
func (m Memory) Close() {}
