//go:build unix

package services

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// redisDatabases is how many an instance has.
const redisDatabases = 1024

// Redis is an instance of Redis.
type Redis struct {
	Server

	cli       string
	databases atomic.Int64
}

// StartRedis starts a new instance that is a master. The error is a
// *MissingError where Redis is not installed.
func StartRedis() (*Redis, error) { return startRedis(0, "--databases", strconv.Itoa(redisDatabases)) }

// StartReplica starts a replica of master and returns when it has what the
// master has. Do("REPLICAOF", "NO", "ONE") makes it a master, until its next
// Start.
func StartReplica(master *Redis) (*Redis, error) {
	r, err := startRedis(0, "--replicaof", host, strconv.Itoa(master.port), "--databases", strconv.Itoa(redisDatabases))
	if err != nil {
		return nil, err
	}
	return r, r.waitFor("INFO replication", replicated)
}

// startRedis starts a server with more settings, which needs a second port if
// beside is not zero.
func startRedis(beside int, settings ...string) (*Redis, error) {
	server, err := find("redis-server")
	if err != nil {
		return nil, err
	}
	cli, err := find("redis-cli")
	if err != nil {
		return nil, err
	}
	r := &Redis{cli: cli}
	r.Server = Server{
		name:   "redis",
		beside: beside,
		ready:  "Ready to accept connections",
		end:    syscall.SIGKILL, endName: "KILL",
		argv: func() ([]string, error) {
			return append([]string{
				server, "--bind", host, "--port", strconv.Itoa(r.port), "--daemonize", "no",
				// A write is on the disk when it is acknowledged, and nothing is evicted.
				"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxmemory-policy", "noeviction",
				"--repl-diskless-sync-delay", "0", // one replica is waited for, not several
			}, settings...), nil
		},
	}
	return r, r.launch()
}

// URL returns the URL of database 0. Tests of the server itself use it; others
// want NewDatabase.
func (r *Redis) URL() string { return r.url(0) }

// NewDatabase returns the URL of a database that nobody has used.
func (r *Redis) NewDatabase(t testing.TB) string {
	t.Helper()
	n := r.databases.Add(1)
	if n >= redisDatabases {
		t.Fatalf("all %d databases of Redis are taken", redisDatabases)
	}
	return r.url(n)
}

func (r *Redis) url(n int64) string { return fmt.Sprintf("redis://%s/%d", r.Addr(), n) }

// Do sends a command to the server and returns its reply as redis-cli writes
// it to a file; an error reply is an error.
func (r *Redis) Do(command ...string) (string, error) {
	said, err := run(r.folder, append([]string{r.cli, "-e", "-h", host, "-p", strconv.Itoa(r.port)}, command...)...)
	return strings.TrimSpace(said), err
}
