package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/semel-dev/semel"
)

// server is what one server says of itself.
type server struct {
	eviction string // maxmemory-policy
	fsync    string // appendfsync, or notKept
	value    int64  // proto-max-bulk-len: the bytes of the longest value; 0 if it is not told
}

const (
	notTold  = "unknown"
	notKept  = "off" // no append-only file
	fsyncAll = "always"
)

// inspect asks every server whether it keeps what it is given, and how much of
// it. One that does not answer is passed over if another one does: a cluster may
// start without a replica.
func (s *Store) inspect(ctx context.Context) error {
	s.class, s.most = semel.DurableUnlessFailover, MaxReplySize
	silent := map[string]error{}
	nodes := s.client.Nodes()
	for addr, node := range nodes {
		said, err := ask(ctx, node)
		if err != nil {
			silent[addr] = err
			continue
		}
		if err := s.cfg.checkEviction(addr, said.eviction); err != nil {
			return err
		}
		if said.value > 0 {
			s.most = min(s.most, said.value)
		}
		log := s.cfg.Logger.InfoContext
		if said.fsync != fsyncAll {
			s.class, log = semel.BestEffort, s.cfg.Logger.WarnContext
		}
		log(ctx, "redisstore: what the server keeps of a write that it has acknowledged when it ends: all of it with appendfsync always",
			"server", addr, "appendfsync", said.fsync, "maxmemory_policy", said.eviction)
	}
	if len(silent) == len(nodes) {
		var errs []error
		for addr, err := range silent {
			errs = append(errs, fmt.Errorf("%s: %w", addr, err))
		}
		return unavailable(errors.Join(errs...))
	}
	for addr, err := range silent {
		s.cfg.Logger.WarnContext(ctx, "redisstore: a server does not answer", "server", addr, "error", err)
	}
	return nil
}

// checkEviction refuses a server that may evict records. They have no time to
// live, so a policy that evicts only what has one leaves them alone.
func (c *Config) checkEviction(addr, policy string) error {
	switch {
	case policy == "noeviction", strings.HasPrefix(policy, "volatile-"):
		return nil
	case policy != notTold:
		return configError("the server %s has maxmemory-policy %s: it forgets claims and replies when its memory is full, and the work would run again; it must be noeviction, or one of volatile-", addr, policy)
	case c.AssumeNoEviction:
		return nil
	}
	return configError("the server %s does not tell its maxmemory-policy (INFO memory); if it is noeviction, or one of volatile-, set AssumeNoEviction", addr)
}

// ask asks one server. What it may not or cannot tell is notTold.
func ask(ctx context.Context, node rueidis.Client) (server, error) {
	said := server{eviction: notTold, fsync: notTold}
	info, err := node.Do(ctx, node.B().Info().Build()).ToString()
	if err != nil && !forbidden(err) {
		return said, err
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "maxmemory_policy":
			said.eviction = value
		case name == "aof_enabled" && value == "0":
			said.fsync = notKept
		}
	}
	limit, err := configOf(ctx, node, "proto-max-bulk-len")
	if err != nil {
		return said, err
	}
	said.value, _ = strconv.ParseInt(limit, 10, 64) //nolint:errcheck // 0 if it is not told.
	if said.fsync == notKept {
		return said, nil
	}
	fsync, err := configOf(ctx, node, "appendfsync")
	if err != nil {
		return said, err
	}
	// Where the append-only file itself is not told of, how it is written says
	// nothing.
	if fsync != "" && strings.Contains(info, "aof_enabled:1") {
		said.fsync = fsync
	}
	return said, nil
}

// configOf returns a setting of a server, or "" if it does not tell.
func configOf(ctx context.Context, node rueidis.Client, name string) (string, error) {
	config, err := node.Do(ctx, node.B().ConfigGet().Parameter(name).Build()).AsStrMap()
	if err != nil && !forbidden(err) {
		return "", err
	}
	return config[name], nil
}

// forbidden reports whether a server refused a command altogether, as managed
// ones do.
func forbidden(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	return ok && (strings.HasPrefix(reply.Error(), "NOPERM") || strings.Contains(strings.ToLower(reply.Error()), "unknown command"))
}
