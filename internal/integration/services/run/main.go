//go:build unix

// Command run starts the servers that the stores are tested on, prints their
// addresses and ends them at an interrupt:
//
//	go run ./internal/integration/services/run
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/semel-dev/semel/internal/integration/services"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, stdout, stderr io.Writer) int {
	defer services.End()
	if err := start(stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	fmt.Fprintln(stdout, "an interrupt ends them")
	<-ctx.Done()
	return 0
}

func start(stdout io.Writer) error {
	p, err := services.StartPostgres()
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "PostgreSQL    ", p.URL())
	b, err := services.StartPgBouncer(p)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "PgBouncer     ", b.URL())
	m, err := services.StartMariaDB()
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "MariaDB       ", m.DSN())
	r, err := services.StartRedis()
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "Redis         ", r.URL())
	c, err := services.StartRedisCluster()
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "Redis Cluster ", strings.Join(c.Addrs(), " "))
	return nil
}
