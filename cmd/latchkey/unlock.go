package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/look"
)

func unlockCommand() *cli.Command {
	return &cli.Command{
		Name: "unlock", Usage: "take a lock away from its holder", ArgsUsage: "--force NAME",
		Description: "Shows who holds the lock NAME, and asks on a terminal. Then it takes the lock away and grants it to the next waiter.\n" +
			"When another one holds the lock by then, nothing is done. The holder learns that it was taken away, but until then two\n" +
			"may hold the lock: see to it that the holder has ended. The holder's log, and inspect for a day, say who you are, and why.",
		Flags: connection(
			&cli.BoolFlag{Name: "force", Usage: "do it: without it nothing is taken away"},
			&cli.StringFlag{Name: "why", Usage: "the `REASON` that the holder and inspect are told"},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask"},
			&cli.Int64Flag{Name: "token", Usage: "only if the holder has the fencing token `N`, as inspect tells it", DefaultText: "of the one it shows"},
		),
		Action: unlock,
	}
}

func unlock(ctx context.Context, c *cli.Command) error {
	name, err := onlyName(c)
	if err != nil {
		return err
	}
	if !c.Bool("force") {
		return exit(statusUsage, "nothing is taken away without --force")
	}
	r, err := inspect(ctx, c, name)
	if err != nil {
		return err
	}
	out := c.Root().Writer
	printReport(out, r, time.Now())
	if len(r.Holders) == 0 || r.Kind == look.KindSemaphore {
		return exit(statusNotAcquired, "%q is no lock that is held", name)
	}
	token := r.Holders[0].Token
	if c.IsSet("token") && c.Int64("token") != token {
		return exit(statusNotAcquired, "%q is held with token %d: nothing was done", name, token)
	}
	if !c.Bool("yes") && term.IsTerminal(int(os.Stdin.Fd())) {
		_, _ = fmt.Fprint(out, "Take it away? [y/N] ")
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y") {
			return exit(statusNotAcquired, "nothing was done")
		}
	}
	client, err := open(c, "latchkey unlock"+byUser())
	if err != nil {
		return err
	}
	defer client.Close()
	l := look.New(client, nil, c.String("prefix")) // to take away needs no plain client
	taken, err := l.TakeAway(latchkey.WithNote(ctx, c.String("why")), name, r, token)
	switch {
	case err != nil:
		return failed(err)
	case !taken:
		return exit(statusNotAcquired, "that holder has given %q back: nothing was done", name)
	}
	_, _ = fmt.Fprintln(out, "it was taken away")
	return nil
}

// byUser says who runs the command, if that is known.
func byUser() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return ""
	}
	return " by " + u.Username
}
