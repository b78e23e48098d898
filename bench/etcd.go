package main

import (
	"errors"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd runs an embedded etcd, and returns where it listens.
func startEtcd() (addr string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "bench-etcd-")
	if err != nil {
		return "", nil, err
	}
	c := embed.NewConfig()
	c.Dir, c.LogLevel = dir, "fatal"
	free, _ := url.Parse("http://127.0.0.1:0")
	c.ListenClientUrls, c.ListenPeerUrls = []url.URL{*free}, []url.URL{*free}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() { e.Close(); _ = os.RemoveAll(dir) }
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		stop()
		return "", nil, errors.New("etcd did not start within 30 s")
	}
	return e.Clients[0].Addr().String(), stop, nil
}
