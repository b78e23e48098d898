package integration

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
)

// containers are servers in a network of their own. They have fixed addresses in it, because Sentinel and
// Cluster know each other by these; clients reach them through mapped ports, wherever the engine is.
type containers struct {
	api     *testcontainers.DockerClient
	network string
	prefix  [3]byte

	mu    sync.Mutex
	count byte
	nodes map[string]*testcontainers.DockerContainer // by address
}

const port = "6379/tcp"

func image() string {
	if name := os.Getenv("LATCHKEY_IMAGE"); name != "" {
		return name
	}
	return "redis:7-alpine"
}

// engineAnswers is asked once: without an engine each question takes seconds.
var engineAnswers = sync.OnceValue(func() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	provider, err := testcontainers.ProviderDocker.GetProvider()
	if err != nil {
		return false
	}
	defer func() { _ = provider.Close() }() // asked, and done
	return provider.Health(ctx) == nil
})

// networks counts those of this process, so that each has a range of its own.
var networks atomic.Int32

func newContainers(t testing.TB) engine {
	t.Helper()
	if !engineAnswers() {
		return nil
	}
	ctx := context.Background()
	e := &containers{nodes: map[string]*testcontainers.DockerContainer{}, count: 10}
	var err error
	e.api, err = testcontainers.NewDockerClientWithOpts(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.api.Close() })
	for try := range 50 { // another range may be taken by somebody else
		n := networks.Add(1)
		e.prefix = [3]byte{198, byte(18 + n/250), byte(n % 250)} // the range for tests of network devices
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{e.prefix[0], e.prefix[1], e.prefix[2], 0}), 24)
		var made *testcontainers.DockerNetwork
		made, err = tcnetwork.New(ctx, tcnetwork.WithIPAM(&network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}}))
		if err == nil {
			e.network = made.Name
			t.Cleanup(func() {
				if err := made.Remove(context.Background()); err != nil {
					t.Errorf("a network is left: %v", err)
				}
			})
			return e
		}
		slog.Debug("no network", "try", try, "error", err)
	}
	require.NoError(t, err)
	return nil
}

func (e *containers) launch(t testing.TB, config string, args ...string) *node {
	t.Helper()
	e.mu.Lock()
	e.count++
	ip := netip.AddrFrom4([4]byte{e.prefix[0], e.prefix[1], e.prefix[2], e.count})
	e.mu.Unlock()
	addr := net.JoinHostPort(ip.String(), "6379")
	command := []string{"redis-server"}
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithExposedPorts(port),
		tcnetwork.WithNetworkName(nil, e.network),
		testcontainers.WithEndpointSettingsModifier(func(s map[string]*network.EndpointSettings) {
			s[e.network] = &network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: ip}}
		}),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) { h.NetworkMode = container.NetworkMode(e.network) }),
	}
	if config != "" {
		options = append(options, testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader: strings.NewReader(config), ContainerFilePath: "/data/server.conf", FileMode: 0o666,
		}))
		command = append(command, "/data/server.conf")
	}
	// Each says who it is: a rule for addresses that an engine which was killed left behind lets all look alike.
	command = append(command, "--port", "6379", "--protected-mode", "no", "--save", "", "--dir", "/data",
		"--repl-diskless-sync-delay", "0", "--replica-announce-ip", ip.String(), "--cluster-announce-ip", ip.String())
	options = append(options, testcontainers.WithCmd(append(command, args...)...))
	c, err := testcontainers.Run(context.Background(), image(), options...)
	testcontainers.CleanupContainer(t, c)
	require.NoError(t, err)
	e.mu.Lock()
	e.nodes[addr] = c
	e.mu.Unlock()
	signal := func(name string) func() {
		return func() {
			_, err := e.api.ContainerKill(context.Background(), c.GetContainerID(), client.ContainerKillOptions{Signal: name})
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				s, err := c.State(context.Background())
				return err == nil && (name != "KILL" || !s.Running)
			}, 10*time.Second, 5*time.Millisecond)
		}
	}
	n := &node{engine: e, addr: addr, kill: signal("KILL"), stop: signal("STOP"), resume: signal("CONT")}
	n.start = func() {
		_, err := e.api.ContainerStart(context.Background(), c.GetContainerID(), client.ContainerStartOptions{})
		require.NoError(t, err)
		n.answers(t)
	}
	n.answers(t)
	return n
}

// answers waits until the node does.
func (n *node) answers(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := n.ask("PING"); return err == nil }, 20*time.Second, 10*time.Millisecond,
		"%s does not answer", n.addr)
}

// reach asks where the port is mapped to each time: it is another one after a restart.
func (e *containers) reach(ctx context.Context, addr string) (string, error) {
	e.mu.Lock()
	c := e.nodes[addr]
	e.mu.Unlock()
	if c == nil {
		return "", fmt.Errorf("%s is no container of this test", addr)
	}
	return c.PortEndpoint(ctx, port, "")
}
