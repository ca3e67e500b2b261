//go:build unix

package services_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
)

func TestAReplicaTakesOver(t *testing.T) {
	t.Parallel()
	master := services.NewRedis(t)
	c := &redisCounter{master}
	c.add(t)
	replica := services.NewReplica(t, master)
	c.add(t)
	replicated := func() bool {
		n, err := replica.Do("GET", "added")
		return err == nil && n == "2"
	}
	assert.Eventually(t, "the replica has what its master was given", replicated)
	_, err := replica.Do("INCR", "added")
	assert.True(t, err != nil, "a replica takes a write")
	master.Kill()
	_, err = replica.Do("REPLICAOF", "NO", "ONE")
	assert.NoError(t, err)
	n, err := replica.Do("INCR", "added")
	assert.NoError(t, err)
	assert.Equal(t, n, "3")
}

func TestARedisClusterServesAllSlots(t *testing.T) {
	t.Parallel()
	c := services.NewRedisCluster(t)
	assert.Equal(t, len(c.Addrs()), 6)
	const keys = 20 // more than enough for all three masters
	for i := range keys {
		_, err := c.Nodes[0].Do("-c", "SET", "key"+strconv.Itoa(i), "value")
		assert.NoError(t, err)
	}
	masters := 0
	killed := 0
	for i, node := range c.Nodes {
		role, err := node.Do("ROLE")
		assert.NoError(t, err)
		if strings.HasPrefix(role, "master") {
			masters++
			killed = i
		}
	}
	assert.Equal(t, masters, 3)

	c.Nodes[killed].Kill()
	asked := c.Nodes[(killed+1)%len(c.Nodes)]
	assert.Eventually(t, "a replica has taken the slots of the master that was killed", func() bool {
		for i := range keys {
			value, err := asked.Do("-c", "GET", "key"+strconv.Itoa(i))
			if err != nil || value != "value" {
				return false
			}
		}
		return true
	})
	assert.NoError(t, c.Nodes[killed].Start())
	assert.Eventually(t, "it is the replica of its replica", func() bool {
		role, err := c.Nodes[killed].Do("ROLE")
		return err == nil && strings.HasPrefix(role, "slave")
	})
}
