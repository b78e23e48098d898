//go:build !unix

package main

import "errors"

// canStop says that a process cannot be frozen here: the scene is left out, and the summary says so.
const canStop = false

func (p *process) stop() error { return errors.ErrUnsupported }

func (p *process) resume() error { return errors.ErrUnsupported }
