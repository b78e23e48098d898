package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/redis/rueidis"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/look"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// connection are the flags of a sub-command that talks to Redis: its own ones, and behind them how to reach it.
func connection(own ...cli.Flag) []cli.Flag {
	return append(own,
		&cli.StringFlag{
			Name: "redis", Usage: "`URL` of a Redis, as redis://user:password@host:6379/0, rediss:// or unix://; further servers of a cluster, " +
				"or further sentinels, as ?addr=host:port",
			Value: "redis://localhost:6379", Sources: cli.EnvVars("LATCHKEY_REDIS"),
		},
		&cli.StringFlag{
			Name: "prefix", Usage: "what stands before all names of the application (WithKeyPrefix)", Sources: cli.EnvVars("LATCHKEY_PREFIX"),
		},
		&cli.StringFlag{Name: "tls-ca", Usage: "`FILE` of the authorities that the server's certificate is of", Sources: cli.EnvVars("LATCHKEY_TLS_CA")},
		&cli.StringFlag{Name: "tls-cert", Usage: "`FILE` of our certificate", Sources: cli.EnvVars("LATCHKEY_TLS_CERT")},
		&cli.StringFlag{Name: "tls-key", Usage: "`FILE` of its key", Sources: cli.EnvVars("LATCHKEY_TLS_KEY")},
		&cli.StringFlag{Name: "tls-name", Usage: "`NAME` of the server in its certificate, if that is not the host of the URL", Sources: cli.EnvVars("LATCHKEY_TLS_NAME")},
		&cli.StringFlag{
			Name: "sentinel", Usage: "`NAME` of the master, where the URL is that of a sentinel", Sources: cli.EnvVars("LATCHKEY_SENTINEL"),
		},
		&cli.StringFlag{Name: "sentinel-user", Usage: "user of the sentinels", Sources: cli.EnvVars("LATCHKEY_SENTINEL_USER")},
		&cli.StringFlag{Name: "sentinel-password", Usage: "password of the sentinels: better in the environment", Sources: cli.EnvVars("LATCHKEY_SENTINEL_PASSWORD")},
	)
}

// optionOf is the configuration that the flags say.
func optionOf(c *cli.Command) (rueidis.ClientOption, error) {
	if err := checkPassed(c); err != nil {
		return rueidis.ClientOption{}, err
	}
	option, err := rueidisclient.ParseURL(c.String("redis"))
	if err != nil {
		return option, failed(err)
	}
	if err := secure(c, &option); err != nil {
		return option, err
	}
	if name := c.String("sentinel"); name != "" {
		option.Sentinel.MasterSet = name
	}
	if option.Sentinel.MasterSet == "" && (c.IsSet("sentinel-user") || c.IsSet("sentinel-password")) {
		return option, exit(statusUsage, "--sentinel-user and --sentinel-password need --sentinel")
	}
	option.Sentinel.Username, option.Sentinel.Password = c.String("sentinel-user"), c.String("sentinel-password")
	option.Sentinel.TLSConfig = option.TLSConfig
	return option, nil
}

// secure adds what the flags say of TLS.
func secure(c *cli.Command, option *rueidis.ClientOption) error {
	asked := c.IsSet("tls-ca") || c.IsSet("tls-cert") || c.IsSet("tls-key") || c.IsSet("tls-name")
	switch {
	case !asked:
		return nil
	case option.TLSConfig == nil:
		return exit(statusUsage, "the TLS flags need a URL that begins with rediss://")
	case c.IsSet("tls-cert") != c.IsSet("tls-key"):
		return exit(statusUsage, "--tls-cert and --tls-key need each other")
	}
	if name := c.String("tls-name"); name != "" {
		option.TLSConfig.ServerName = name
	}
	if file := c.String("tls-ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return exit(statusUsage, "--tls-ca: %w", err)
		}
		option.TLSConfig.RootCAs = x509.NewCertPool()
		if !option.TLSConfig.RootCAs.AppendCertsFromPEM(text) {
			return exit(statusUsage, "--tls-ca: %s has no certificate", file)
		}
	}
	if c.IsSet("tls-cert") {
		pair, err := tls.LoadX509KeyPair(c.String("tls-cert"), c.String("tls-key"))
		if err != nil {
			return exit(statusUsage, "--tls-cert: %w", err)
		}
		option.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// open returns the client of a sub-command. label is what others see of it.
func open(c *cli.Command, label string, more ...latchkey.Option) (*latchkey.Client, error) {
	option, err := optionOf(c)
	if err != nil {
		return nil, err
	}
	const most = 100 // bytes of a label
	if len(label) > most {
		label = label[:most]
	}
	options := append([]latchkey.Option{latchkey.WithKeyPrefix(c.String("prefix")), latchkey.WithLabel(label), latchkey.WithLogger(slog.New(slog.DiscardHandler))}, more...) // what matters is said by the command
	client, err := rueidisclient.New(option, options...)
	if err != nil {
		return nil, failed(err)
	}
	return client, nil
}

// connects is for how long a command that waits for a name waits for Redis before that, unless --wait says otherwise: a
// server restarts, or is busy. With --try it does not.
const connects = 10 * time.Second

// openPatiently is open for such a command. It returns what is left of --wait.
func openPatiently(ctx context.Context, c *cli.Command, label string) (_ *latchkey.Client, left time.Duration, err error) {
	began, most := time.Now(), connects
	if c.IsSet("wait") {
		most = c.Duration("wait")
	}
	for {
		client, err := open(c, label)
		left := max(0, most-time.Since(began))
		if !errors.Is(err, latchkey.ErrUnavailable) || isTry(c) || left == 0 || ctx.Err() != nil {
			return client, left, err
		}
		select {
		case <-time.After(min(left, 100*time.Millisecond)):
		case <-ctx.Done():
		}
	}
}

// openPlain returns a client for what only Redis itself can say.
func openPlain(c *cli.Command) (rueidis.Client, error) {
	option, err := optionOf(c)
	if err != nil {
		return nil, err
	}
	option.DisableCache, option.ConnWriteTimeout, option.Dialer.Timeout = true, look.Silence, look.Silence
	r, err := rueidis.NewClient(option)
	if err != nil {
		return nil, exit(statusAway, "%w", err)
	}
	return r, nil
}

// looker looks at names with clients of its own.
type looker struct{ *look.Looker }

func newLooker(c *cli.Command) (looker, error) {
	client, err := open(c, c.FullName())
	if err != nil {
		return looker{}, err
	}
	plain, err := openPlain(c)
	if err != nil {
		client.Close()
		return looker{}, err
	}
	return looker{look.New(client, plain, c.String("prefix"))}, nil
}

func (l looker) close() {
	l.Client.Close()
	l.Plain.Close()
}
