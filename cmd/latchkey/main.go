// Command latchkey runs commands under a lock, says who holds one and who waits, takes it away, and shows
// what the locks of this module do on real processes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"
)

func main() {
	ctx, stop, typed := context.Background(), func() {}, os.Args
	switch {
	case len(os.Args) > 1 && !slices.Contains(runners, os.Args[1]):
		ctx, stop = untilSignal(ctx)
	case os.Getpid() == 1:
		status, err := runAsInit()
		if err != nil {
			fmt.Fprintln(os.Stderr, "latchkey:", err)
		}
		os.Exit(status)
	default:
		typed, _ = divided()
	}
	defer stop()
	root, out := command(), &standardOutput{}
	root.Writer = out
	err := root.Run(ctx, typed)
	if out.err != nil { // whatever else is said: who reads it knows nothing
		err = exit(statusOutput, "%w", out.err)
	}
	if err != nil {
		if !errors.Is(err, errBroken) && err.Error() != "" { // what is broken the summary has said
			fmt.Fprintln(os.Stderr, "latchkey:", strings.TrimPrefix(err.Error(), "latchkey: "))
		}
		stop()
		var status cli.ExitCoder
		if errors.As(err, &status) {
			os.Exit(status.ExitCode()) //nolint:gocritic // stop was called
		}
		os.Exit(1)
	}
}

// standardOutput remembers that something could not be written.
type standardOutput struct{ err error }

func (s *standardOutput) Write(b []byte) (int, error) {
	n, err := os.Stdout.Write(b)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// onTerminal returns the terminal that what is written to out appears on, if it does.
func onTerminal(out io.Writer) (f *os.File, ok bool) {
	if _, standard := out.(*standardOutput); standard {
		f = os.Stdout
	} else if f, ok = out.(*os.File); !ok {
		return nil, false
	}
	return f, term.IsTerminal(int(f.Fd()))
}

// runners are the sub-commands that run another one, which gets the signals.
var runners = []string{"lock", "semaphore", "once", "start"}

func command() *cli.Command {
	root := subCommands()
	strict(root)
	return root
}

// examples are by the names of a sub-command and of the one above it.
var examples = map[string]string{
	"latchkey lock":      "latchkey lock --wait 30s orders:42 -- ./reindex --all",
	"latchkey semaphore": "latchkey semaphore exports --capacity 3 -- ./export",
	"latchkey once":      "latchkey once report --every 5m -- ./report",
	"latch set":          "latchkey latch set deploy 3",
	"latch count":        "latchkey latch count deploy --as web-1",
	"latch await":        "latchkey latch await deploy --wait 5m",
	"latch show":         "latchkey latch show deploy --json",
	"latchkey inspect":   "latchkey inspect orders:42 --json",
	"latchkey explain":   "latchkey explain orders:42",
	"latchkey list":      "latchkey list 'orders:*'",
	"latchkey top":       "latchkey top 'orders:*'",
	"latchkey web":       "latchkey web --listen 127.0.0.1:9000",
	"latchkey deadlocks": "latchkey deadlocks --json",
	"latchkey unlock":    "latchkey unlock --force orders:42",
	"latchkey pause":     "latchkey pause report --why 'the database moves' --for 2h",
	"latchkey resume":    "latchkey resume report",
	"latchkey doctor":    "latchkey doctor --redis rediss://user:password@redis.example:6379",
	"latchkey serve":     "latchkey serve --listen 127.0.0.1:7000",
	"latchkey demo":      "latchkey demo --processes 8",
}

// strict gives all commands below this one the status and the words for arguments that make no sense.
func strict(c *cli.Command) {
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		if c == c.Root() && len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") && c.Command(os.Args[1]) == nil {
			return unknownCommand(c, os.Args[1]) // what follows are flags of what was meant
		}
		return exit(statusUsage, "%w; see %s --help", err, c.FullName())
	}
	if len(c.Commands) > 0 {
		c.HideHelpCommand, c.Suggest = true, true
		c.Action = func(_ context.Context, c *cli.Command) error {
			if word := c.Args().First(); word != "" && word != "help" {
				return unknownCommand(c, word)
			}
			return cli.ShowSubcommandHelp(c)
		}
	}
	for _, below := range c.Commands {
		if example := examples[c.Name+" "+below.Name]; example != "" {
			below.Description = strings.TrimSpace(below.Description + "\n\nExample: " + example)
		}
		strict(below)
	}
}

// unknownCommand is the error of a word that is no sub-command.
func unknownCommand(c *cli.Command, word string) error {
	meant := ""
	if near := cli.SuggestCommand(c.VisibleCommands(), word); near != "" && near != "help" {
		meant = fmt.Sprintf(": do you mean %s?", near)
	}
	return exit(statusUsage, "there is no %s %s%s; see %s --help", c.FullName(), word, meant, c.FullName())
}

func subCommands() *cli.Command {
	return &cli.Command{
		Name:    "latchkey",
		Usage:   "locks across processes, on Redis or Valkey",
		Version: version(),
		// latchkey completion bash, zsh, fish or pwsh prints it.
		EnableShellCompletion:           true,
		ConfigureShellCompletionCommand: func(c *cli.Command) { c.Hidden = false },
		// The process ends in main, with the status that an error has.
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
		Commands: []*cli.Command{
			lockCommand(), semaphoreCommand(), onceCommand(), latchCommand(), inspectCommand(), explainCommand(), listCommand(), topCommand(), webCommand(), deadlocksCommand(), unlockCommand(), pauseCommand(), resumeCommand(), doctorCommand(), serveCommand(), guardCommand(), startCommand(),
			{
				Name: "version", Usage: "print the version of this program",
				Action: func(_ context.Context, c *cli.Command) error {
					_, err := fmt.Fprintln(c.Root().Writer, "latchkey version", version())
					return err
				},
			},
			{
				Name:  "demo",
				Usage: "sell a stock from several processes, without a lock and with one, and break it on purpose",
				Flags: []cli.Flag{
					&cli.StringFlag{
						Name: "redis", Usage: "`URL` of a Redis; an embedded server otherwise",
						Sources: cli.EnvVars("LATCHKEY_REDIS"),
					},
					&cli.BoolFlag{Name: "json", Usage: "print the summary as JSON, and progress to standard error"},
					&cli.IntFlag{Name: "processes", Usage: "how many sell, from 2 to 16", Value: 4, Validator: between(2, 16)},
					&cli.IntFlag{Name: "stock", Usage: "how many items there are, from 10 to 10000", Value: 300, Validator: between(10, 10_000)},
				},
				Action: func(ctx context.Context, c *cli.Command) error {
					return demo(ctx, settings{
						redis: c.String("redis"), json: c.Bool("json"), processes: c.Int("processes"), stock: c.Int("stock"), out: c.Root().Writer,
					})
				},
			},
			{
				Name: "demo-worker", Hidden: true,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "redis", Sources: cli.EnvVars(envURL)}, &cli.StringFlag{Name: "prefix"}, &cli.StringFlag{Name: "mode"},
				},
				Action: func(ctx context.Context, c *cli.Command) error {
					return work(ctx, c.String("redis"), c.String("prefix"), mode(c.String("mode")))
				},
			},
		},
	}
}

func between(low, high int) func(int) error {
	return func(n int) error {
		if n < low || n > high {
			return fmt.Errorf("must be from %d to %d, not %d", low, high, n)
		}
		return nil
	}
}
