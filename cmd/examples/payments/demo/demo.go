// Package demo puts the reference system together: the front in this process,
// the payment service and the bank in processes of their own, and a SQLite file
// for each; or a store that others use as well for the payment service.
//
// The service and the bank are this very program, started again with the
// arguments that Config names. Neither outlives the process that started it.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"

	_ "modernc.org/sqlite" // the driver "sqlite" of all three files

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
	"github.com/semel-dev/semel/cmd/examples/payments/front"
	"github.com/semel-dev/semel/cmd/examples/payments/shop"
	"github.com/semel-dev/semel/cmd/examples/payments/supervise"
	"github.com/semel-dev/semel/sqlstore"
)

const (
	// drainWithin is how long requests may take to finish when the demo stops.
	drainWithin = payments.SlowFor + 2*time.Second
	// driver is the name of the SQLite driver.
	driver = "sqlite"
)

// Config says how the demo runs. Addr, Program and Child are required.
type Config struct {
	// Addr is where to listen, "HOST:PORT"; port 0 takes a free one.
	Addr string
	// Data is the directory of the databases; it is created. Default: a
	// temporary one that is removed at the end.
	Data string
	// Store is where the payment service keeps what it writes. Default: in a
	// file in Data.
	Store *Store
	// Program is the path of the program that is started for each child, and
	// Child its first argument, before "service" or "bank".
	Program string
	Child   string
	// BankForgets starts a bank that does not look at keys.
	BankForgets bool
	// LogKeys writes keys into the logs as they are.
	LogKeys bool
	// Lines gets the processes' log lines. Default: only GET /demo/log does.
	Lines io.Writer
	// Events gets what happens to the processes. Default: dropped.
	Events io.Writer
	// Logger gets what goes wrong in this process. Default slog.Default().
	Logger *slog.Logger
}

// Demo is a reference system that has its address already.
type Demo struct {
	cfg       Config
	data      string
	temporary bool
	lock      *os.File // of the data directory
	name      string   // in Config.Store
	listener  net.Listener
	orders    *sqlstore.Handles
	server    *http.Server
	bank      *supervise.Process
	service   *supervise.Process
	crowd     *crowd.Crowd
	out       sync.Mutex // of cfg.Lines and cfg.Events
}

// New takes the address and the data directory. It starts nothing: see Run,
// which also gives both back.
func New(ctx context.Context, cfg Config) (*Demo, error) {
	switch {
	case cfg.Addr == "":
		return nil, errors.New("demo: Config.Addr is required: where to listen, such as 127.0.0.1:0")
	case cfg.Program == "":
		return nil, errors.New("demo: Config.Program is required: the program to start for each child")
	case cfg.Child == "":
		return nil, errors.New("demo: Config.Child is required: the first argument of each child")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	d := &Demo{cfg: cfg}
	var lc net.ListenConfig
	var err error
	if d.listener, err = lc.Listen(ctx, "tcp", cfg.Addr); err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w (choose another address with --addr, such as 127.0.0.1:0 for a free port)", cfg.Addr, err)
	}
	if err = d.prepare(ctx); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *Demo) prepare(ctx context.Context) error {
	if err := d.makeData(); err != nil {
		return err
	}
	if err := d.moveIn(ctx); err != nil {
		return err
	}
	var err error
	if d.orders, err = sqlstore.OpenSQLite(driver, filepath.Join(d.data, "shop.db")); err != nil {
		return fmt.Errorf("open the order book in %s: %w", d.data, err)
	}
	log := &front.Log{}
	d.crowd = crowd.New(d.URL(), log.Changed)
	page, err := shop.New(shop.Config{Front: d.URL(), Store: d.keysIn()})
	if err != nil {
		return err
	}
	if d.bank, err = d.process("bank", log, d.bankArgs, nil); err != nil {
		return err
	}
	if d.service, err = d.process("service", log, d.serviceArgs, d.storeEnv()); err != nil {
		return err
	}
	f, err := front.New(ctx, front.Config{
		Service: d.service.Dial,
		Bank:    d.bank.Dial,
		Orders:  d.orders.Write,
		Page:    page,
		Crowd:   d.crowd.Handler(),
		Log:     log,
		Logger:  d.cfg.Logger,
	})
	if err != nil {
		return err
	}
	d.server = &http.Server{
		Handler:           local(d.listener.Addr(), f.Handler()),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       semel.DefaultBodyReadTimeout,
		ErrorLog:          slog.NewLogLogger(d.cfg.Logger.Handler(), slog.LevelDebug),
	}
	d.server.RegisterOnShutdown(f.Stop)
	// A browser sends a request again by itself when a connection that it
	// used before dies without an answer. The demo has to show who sends
	// again, so no connection is used twice.
	d.server.SetKeepAlivesEnabled(false)
	return nil
}

func (d *Demo) makeData() error {
	if d.data = d.cfg.Data; d.data != "" {
		if err := os.MkdirAll(d.data, 0o700); err != nil {
			return err
		}
		return d.lockData()
	}
	d.temporary = true
	var err error
	d.data, err = os.MkdirTemp("", "semel-demo-")
	return err
}

// URL returns the public address.
func (d *Demo) URL() string { return "http://" + d.listener.Addr().String() }

// Data returns the directory of the databases, and whether it is removed at
// the end.
func (d *Demo) Data() (dir string, temporary bool) { return d.data, d.temporary }

// Program returns Config.Program.
func (d *Demo) Program() string { return d.cfg.Program }

// Store returns Config.Store.
func (d *Demo) Store() *Store { return d.cfg.Store }

// Name returns what the demo is called in its store; empty without one.
func (d *Demo) Name() string { return d.name }

// process prepares one child.
func (d *Demo) process(name string, log *front.Log, args func(context.Context) ([]string, error), env []string) (*supervise.Process, error) {
	return supervise.New(supervise.Config{
		Name: name,
		Path: d.cfg.Program,
		Args: args,
		Env:  env,
		Line: func(line string) {
			log.Line(line)
			d.print(d.cfg.Lines, name+": "+line)
		},
		Event: func(text string) { d.print(d.cfg.Events, text) },
		Died:  func(pid int, how string) { log.Died(name, pid, how) },
	})
}

func (d *Demo) print(w io.Writer, line string) {
	if w == nil {
		return
	}
	d.out.Lock()
	defer d.out.Unlock()
	fmt.Fprintln(w, harmless(line))
}

// harmless writes what would steer a terminal as JSON would: there are names in
// the lines that clients chose.
func harmless(line string) string {
	var b strings.Builder
	for _, r := range line {
		if unicode.IsPrint(r) || r == '\t' {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// Ready waits until both processes are up.
func (d *Demo) Ready(ctx context.Context) error {
	for _, p := range []*supervise.Process{d.bank, d.service} {
		if _, err := p.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Run serves until ctx ends, then lets requests finish, ends the processes and
// gives address and directory back. It returns nil then, or why it could not
// go on.
func (d *Demo) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The processes end after the last request has.
	children, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var running sync.WaitGroup
	for _, p := range []*supervise.Process{d.bank, d.service} {
		running.Go(func() {
			if err := p.Run(children); err != nil {
				cancel(err)
			}
		})
	}
	running.Go(func() {
		if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
			cancel(err)
		}
	})
	running.Go(func() { d.crowd.Run(ctx) }) //nolint:errcheck // it ends with ctx and has no other error.
	<-ctx.Done()
	supervise.Drain(d.server, drainWithin) //nolint:errcheck // what was dropped is dropped.
	stop()
	running.Wait()
	err := d.close()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

func (d *Demo) close() error {
	d.listener.Close()
	var err error
	if d.orders != nil {
		err = d.orders.Close()
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	if d.temporary {
		err = errors.Join(err, os.RemoveAll(d.data))
	}
	return err
}
