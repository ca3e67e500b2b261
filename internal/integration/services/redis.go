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

// startRedis starts a server with more settings; the port that is higher by
// beside must be free, too.
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
		name:  "redis",
		ready: "Ready to accept connections",
		end:   syscall.SIGKILL, endName: "KILL",
		argv: func(s *Server) []string {
			return append([]string{
				server, "--bind", host, "--port", strconv.Itoa(s.port), "--daemonize", "no",
				// A write is on the disk when it is acknowledged, and nothing is evicted.
				"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxmemory-policy", "noeviction",
			}, settings...)
		},
	}
	return r, launch(&r.Server, beside, func(*Server) error { return nil })
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
