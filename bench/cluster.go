package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// ofNodes stands before the address of a cluster of several nodes, as ofCluster before the address of a cluster of one.
const ofNodes = "nodes:"

// onNodes are the scenarios on a cluster of three.
func onNodes() []scenario {
	return []scenario{{
		Name: "cluster keys", Title: "64 goroutines on 64 keys of a cluster of three", Kind: "locks", Servers: 3, Cluster: true,
		Contenders: []string{"floor", "rlock", "fairlock", "redislock", "redsync"}, Processes: 1, Goroutines: 64, Keys: 64,
	}}
}

// clusterOf starts a cluster of n nodes without replicas. What is asked of it is asked of all its nodes.
func clusterOf(n int) (all *server, stop func(), err error) {
	var nodes []*server
	stop = func() {
		for _, node := range nodes {
			node.stop()
		}
	}
	for range n {
		node, err := launch(nil, clustered...)
		if err != nil {
			stop()
			return nil, nil, err
		}
		nodes = append(nodes, node)
	}
	const slots = 16384
	for i, node := range nodes {
		host, port, _ := strings.Cut(nodes[0].addr, ":")
		err = errors.Join(err,
			node.do("CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(i*slots/n), fmt.Sprint((i+1)*slots/n-1)),
			node.do("CLUSTER", "MEET", host, port))
	}
	for _, node := range nodes {
		err = errors.Join(err, node.serves(n))
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return &server{addr: ofNodes + nodes[0].addr, client: nodes[0].client, others: nodes[1:]}, stop, nil
}

// serves waits until the node knows n nodes, and all slots are served.
func (s *server) serves(n int) error {
	for began := time.Now(); time.Since(began) < 30*time.Second; <-time.After(10 * time.Millisecond) {
		text, err := s.client.Do(context.Background(), s.client.B().ClusterInfo().Build()).ToString()
		if err != nil {
			return err
		}
		if strings.Contains(text, "cluster_state:ok") && strings.Contains(text, fmt.Sprintf("cluster_size:%d\r", n)) {
			return nil
		}
	}
	return errors.New("the cluster does not serve")
}

// openNodes is a plain client of a cluster of several nodes.
func openNodes(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, PipelineMultiplex: -1})
}
