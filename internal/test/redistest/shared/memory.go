//go:build !windows

// Package shared is memory that processes share, outside Redis: there tests and benchmarks see who is inside.
package shared

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Memory is a file in memory. What a process writes there the others see.
type Memory []byte

// Open maps so many bytes of a file, which is made when there is none.
func Open(path string, size int) (Memory, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the mapping stays
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

// Word is the n-th number of the memory. Each has a cache line of its own, 64 bytes.
func (m Memory) Word(n int) *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&m[64*n])) //nolint:gosec // shared memory is the point
}

// Close unmaps it.
func (m Memory) Close() { _ = syscall.Munmap(m) }
