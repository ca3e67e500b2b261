package integration

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/redisstore"
)

// follower is an address that leads to the master: new connections to the
// present one, while those that are open stay where they lead.
type follower struct {
	net.Listener

	to atomic.Value // string
}

func newFollower(t *testing.T, to string) *follower {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	f := &follower{Listener: l}
	f.to.Store(to)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go f.forward(conn)
		}
	}()
	return f
}

func (f *follower) forward(conn net.Conn) {
	defer conn.Close()
	to, err := net.Dial("tcp", f.to.Load().(string)) //nolint:forcetypeassert // nothing else is stored.
	if err != nil {
		return
	}
	go func() {
		io.Copy(to, conn) //nolint:errcheck // it ends with the connection.
		to.Close()
	}()
	io.Copy(conn, to) //nolint:errcheck // the same.
}

// A master that was demoted answers READONLY for as long as the connection
// lasts, and the connection lasts as long as it answers.
func TestRedisADemotedMasterIsLeft(t *testing.T) {
	t.Parallel()
	master := services.NewRedis(t)
	replica := services.NewReplica(t, master)
	at := newFollower(t, master.Addr())
	s := openRedis(t, "redis://"+at.Addr().String(), redisstore.Config{})
	claim := claimed(t, s, "claimed before")
	stored, err := master.Do("DBSIZE")
	assert.NoError(t, err)
	assert.Eventually(t, "the replica has the claim", func() bool {
		has, err := replica.Do("DBSIZE")
		return err == nil && has == stored
	})

	_, err = replica.Do("REPLICAOF", "NO", "ONE")
	assert.NoError(t, err)
	at.to.Store(replica.Addr())
	host, port, err := net.SplitHostPort(replica.Addr())
	assert.NoError(t, err)
	_, err = master.Do("REPLICAOF", host, port)
	assert.NoError(t, err)

	_, err = s.Begin(t.Context(), beginFor("claimed after"))
	assert.ErrorIs(t, err, semel.ErrStoreUnavailable, "the demoted master refuses")
	assert.Eventually(t, "the new master takes a claim", func() bool {
		_, err := s.Begin(t.Context(), beginFor("claimed after"))
		return err == nil
	})
	held, err := s.Finish(t.Context(), claim, doneWith("paid"))
	assert.NoError(t, err)
	assert.Equal(t, held.Status, semel.HeldYes, "what was claimed on the old master")
	rec, err := s.Get(t.Context(), claim.Scope, claim.Key)
	assert.NoError(t, err)
	assert.Equal(t, rec.State, semel.StateDone)
}
