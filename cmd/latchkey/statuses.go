package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/semaphore"
)

// The statuses with which the command ends by itself. They are those of sysexits.h, so that few commands
// that it runs have one of them for something else.
const (
	statusUsage       = 64 // what it was told makes no sense
	statusForeign     = 65 // the name holds data that is not what was asked for
	statusMissing     = 66 // there is no such latch or semaphore: nobody has set it
	statusAway        = 69 // Redis did not answer, or refused
	statusOutput      = 74 // what is to be printed cannot be written
	statusGivenUp     = 70 // it has failed as often as it may
	statusNotAcquired = 75 // somebody else holds it
	statusLost        = 76 // the lock was lost, and the command was ended because of that
	statusNotRunnable = 126
	statusNotFound    = 127
	statusSignal      = 128 // and the number of the signal
)

const statusHelp = `Exit status: that of COMMAND, or 128 and the number of the signal that ended it; or
   64  the arguments make no sense
   65  NAME is something else in Redis
   66  there is no such semaphore or latch: nobody has set it
   69  Redis did not answer, or refused
   75  somebody else has it, and --try or --wait did not want to wait (any longer)
   76  it was lost, and COMMAND was ended because of that
   126 COMMAND cannot be run
   127 there is no COMMAND`

// exit is an error that ends the process with a status.
func exit(status int, format string, args ...any) error {
	return cli.Exit(fmt.Errorf(format, args...), status)
}

// usage is that of a sub-command whose arguments make no sense.
func usage(c *cli.Command) error {
	return exit(statusUsage, "usage: %s %s", c.FullName(), c.ArgsUsage)
}

// failed is an error with which the process ends. One that has a status keeps it.
func failed(err error) error {
	var coded cli.ExitCoder
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case errors.Is(err, semaphore.ErrNotSet): // their texts name what a program would call
		err = errors.New("the number of permits is not set: --capacity sets it")
		return cli.Exit(err, statusMissing)
	case errors.Is(err, countdown.ErrNotSet):
		err = errors.New("the latch is not set: latchkey latch set does that")
		return cli.Exit(err, statusMissing)
	case errors.Is(err, once.ErrGivenUp):
		err = errors.New("the command has failed as often as --attempts says, and is not run until --ttl is over")
		return cli.Exit(err, statusGivenUp)
	}
	return cli.Exit(err, statusOf(err))
}

// statusOf is with what the process ends because of an error of this library.
func statusOf(err error) int {
	switch {
	case errors.Is(err, latchkey.ErrInvalid), errors.Is(err, semaphore.ErrCapacity):
		return statusUsage
	case errors.Is(err, latchkey.ErrWrongType):
		return statusForeign
	case errors.Is(err, latchkey.ErrNotAcquired):
		return statusNotAcquired
	case errors.Is(err, latchkey.ErrLost):
		return statusLost
	default:
		return statusAway
	}
}
