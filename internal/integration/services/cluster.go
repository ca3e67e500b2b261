//go:build unix

package services

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	clusterNodes = 6
	// busBeside is how much higher the port is on which the nodes of a Redis
	// Cluster talk with each other.
	busBeside = 10_000
	// replicated is what a replica says when it has what its master has.
	replicated = "master_link_status:up"
)

// RedisCluster is a Redis Cluster of three masters with a replica each. Which
// is which changes with a failover: ask a node for its ROLE.
type RedisCluster struct{ Nodes []*Redis }

// StartRedisCluster starts a new cluster and returns when all nodes know it,
// all slots are served and each replica has what its master has. A node that is down for two seconds is replaced by
// its replica. The error is a *MissingError where Redis is not installed.
func StartRedisCluster() (*RedisCluster, error) {
	c := &RedisCluster{Nodes: make([]*Redis, clusterNodes)}
	errs := make([]error, clusterNodes)
	var starts sync.WaitGroup
	for i := range c.Nodes {
		starts.Go(func() {
			c.Nodes[i], errs[i] = startRedis(busBeside, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
		})
	}
	starts.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, c.join()
}

// join makes one cluster of the nodes.
func (c *RedisCluster) join() error {
	command := append([]string{"--cluster", "create"}, c.Addrs()...)
	command = append(command, "--cluster-replicas", "1", "--cluster-yes")
	if said, err := c.Nodes[0].Do(command...); err != nil {
		return fmt.Errorf("make a Redis Cluster: %w: %s", err, said)
	}
	for _, node := range c.Nodes {
		if err := node.waitFor("CLUSTER INFO", "cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:6"); err != nil {
			return err
		}
		role, err := node.Do("ROLE")
		if err != nil {
			return err
		}
		if strings.HasPrefix(role, "slave") {
			if err := node.waitFor("INFO replication", replicated); err != nil {
				return err
			}
		}
	}
	return nil
}

// Addrs returns the host and port of each node.
func (c *RedisCluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

// Close ends all nodes for good.
func (c *RedisCluster) Close() {
	for _, node := range c.Nodes {
		node.Close()
	}
}

// waitFor asks until the reply has all of want in it.
func (r *Redis) waitFor(command string, want ...string) error {
	late := time.Now().Add(startWithin)
	for {
		said, err := r.Do(strings.Fields(command)...)
		if err != nil {
			return err
		}
		if containsAll(said, want) {
			return nil
		}
		if time.Now().After(late) {
			return fmt.Errorf("redis %s: got no %v within %v: %s", command, want, startWithin, said)
		}
		time.Sleep(pollEvery)
	}
}

func containsAll(s string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}
