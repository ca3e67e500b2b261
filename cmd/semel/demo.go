package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel/cmd/examples/payments/demo"
	"github.com/semel-dev/semel/cmd/examples/payments/scripts"
)

const demoHelp = `Start a shop, a payment service and a bank on this machine, and watch the money
while requests and replies are lost and the service is killed.

Everything has one address. The page at / has three tills side by side: one
without an Idempotency-Key, one whose key is looked up first and saved later, and
one with Semel. With curl:

  curl -i http://127.0.0.1:8420/payments -H 'Idempotency-Key: my-first-key' \
    -H 'Content-Type: application/json' \
    -d '{"amount":2500,"currency":"USD","recipientId":"r_123"}'

  the same line again            the same reply, and no second charge
  /unsafe/payments               the same service with nothing before it
  /naive/payments                look the key up, work, save the key afterwards
  /demo/ledger                   orders, payments, charges and money taken
  /metrics                       what Semel did, for Prometheus
  POST /demo/faults              {"fault":"killed-after-charge","times":1}

The payment service keeps payments, orders and keys in a SQLite file. With --store it
does so in your database, in tables that begin with demo_ and semel_; in Redis it keeps
the keys. A demo sees what is its own there and nothing else. A password in the
arguments can be read by every user of this machine: put the URL into
$SEMEL_DEMO_STORE instead.

  createdb shop && semel demo --store postgres://app@db/shop
  semel demo --store mysql://app@db/shop
  semel demo --store redis://cache:6379
  SEMEL_DEMO_STORE=$(cat store-url) semel demo --script all

With --script a fault is played through by a client that retries, once with a key
and once without, or by one that is killed itself, and the money is counted at the
end. The exit code is 0 when every order with a key was paid exactly once and the
harm without one, or with one that was not kept, showed, 1 when it was not so, 2
for flags that cannot be understood, 130 after Ctrl-C. See it break: --script
killed-after-charge --bank-forgets. The scripts:
`

// scriptHelp lists the scripts, each with what happens in it.
func scriptHelp() string {
	var b strings.Builder
	for _, s := range scripts.List() {
		fmt.Fprintf(&b, "\n  %-21s %s", s.Name, s.What)
	}
	fmt.Fprintf(&b, "\n  %-21s all of them, in this order", scripts.All)
	return b.String()
}

// demoFlags are the flags of "semel demo".
type demoFlags struct {
	addr        string
	data        string
	store       string
	noBrowser   bool
	seed        uint64
	script      string
	asJSON      bool
	verbose     bool
	bankForgets bool
	logKeys     bool
}

const defaultAddr = "127.0.0.1:8420"

func newDemo(s streams) *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start the shop, the payment service and the bank",
		Long:  demoHelp + scriptHelp(),
		Example: `  semel demo
  semel demo --addr 127.0.0.1:0 --data ./demo-data --no-browser
  semel demo --script killed-after-charge
  semel demo --script all --seed 7 --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			if f.script != "" {
				return f.play(cmd.Context(), s)
			}
			return f.serve(cmd.Context(), s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", defaultAddr, "`HOST:PORT` of the whole demo; port 0 takes a free one")
	flags.StringVar(&f.data, "data", "", "`DIR` for the databases, created and kept (default: a temporary one, removed at the end)")
	flags.StringVar(&f.store, "store", "", "`URL` of the store of the payment service: "+storeURLs+" (default: $"+demoStoreVariable+", else a SQLite file)")
	flags.BoolVar(&f.noBrowser, "no-browser", false, "do not open the page")
	flags.StringVar(&f.script, "script", "", "play one `NAME`, or all, and exit")
	flags.Var((*seedValue)(&f.seed), "seed", "of the scripts' keys, prices and pauses (default: random, and printed)")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON: the address, or a line for each script")
	flags.BoolVar(&f.verbose, "verbose", false, "print the log lines of the service and the bank")
	flags.BoolVar(&f.logKeys, "log-keys", false, "log keys as they are, not the beginning of their digest")
	flags.BoolVar(&f.bankForgets, "bank-forgets", false, "start a bank that does not look at its keys: then nothing in front of it can help")
	return cmd
}

// seedValue is a seed on the command line; zero is a random one.
type seedValue uint64

// String is the seed as it is written.
func (v *seedValue) String() string { return strconv.FormatUint(uint64(*v), 10) }

// Type is what help calls it.
func (*seedValue) Type() string { return "N" }

// Set reads the seed.
func (v *seedValue) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("it must be a whole number from 0 to 18446744073709551615, and 0 is a random one")
	}
	*v = seedValue(n)
	return nil
}

// check refuses flags that cannot be meant.
func (f *demoFlags) check(given func(name string) bool) error {
	host, port, err := net.SplitHostPort(f.addr)
	if err != nil {
		return usagef("--addr is %q; it must be HOST:PORT, such as %s", f.addr, defaultAddr)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return usagef("--addr is %q; the port must be a number from 0 to 65535", f.addr)
	}
	if host == "" { // everybody is let in by 0.0.0.0 only
		f.addr = net.JoinHostPort("127.0.0.1", port)
	}
	if f.store == "" {
		f.store = os.Getenv(demoStoreVariable)
	}
	if _, err := findDemoStore(f.store); err != nil {
		return err
	}
	if info, err := os.Stat(f.data); f.data != "" && err == nil && !info.IsDir() {
		return usagef("--data is %q, which is not a directory", f.data)
	}
	if f.script == "" {
		if given("script") {
			return usagef("--script is empty; name one of %s, or %s", scripts.Names(), scripts.All)
		}
		return nil
	}
	if _, err := scripts.Find(f.script); err != nil {
		return usagef("--script: %w", err)
	}
	if !given("addr") {
		f.addr = "127.0.0.1:0"
	}
	if holdsDatabase(f.data) {
		return usagef("--data is %q, which holds a ledger already; scripts count from zero and need an empty directory", f.data)
	}
	return nil
}

// holdsDatabase reports whether there is a database in dir. One that cannot be
// read, or is not there yet, holds none: whoever opens it will say so.
func holdsDatabase(dir string) bool {
	files, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(files, func(file os.DirEntry) bool { return filepath.Ext(file.Name()) == ".db" })
}

// start makes a demo out of the flags.
func (f *demoFlags) start(ctx context.Context, s streams) (*demo.Demo, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program to start it again: %w", err)
	}
	store, err := findDemoStore(f.store)
	if err != nil {
		return nil, err
	}
	cfg := demo.Config{
		Addr:        f.addr,
		Data:        f.data,
		Store:       store,
		Program:     program,
		Child:       demoProcessName,
		BankForgets: f.bankForgets,
		LogKeys:     f.logKeys,
		Logger:      slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if f.verbose {
		cfg.Lines, cfg.Events = s.err, s.err
	}
	if f.script == "" {
		cfg.Events = s.err
	}
	d, err := demo.New(ctx, cfg)
	return d, unlessInterrupted(ctx, explained(err))
}

// serve runs the demo until it is interrupted.
func (f *demoFlags) serve(ctx context.Context, s streams) error {
	d, err := f.start(ctx, s)
	if err != nil {
		return err
	}
	running, stop := background(ctx, d)
	if d.Ready(running) == nil {
		f.announce(s.out, d)
		if !f.noBrowser {
			openBrowser(ctx, d.URL())
		}
		<-running.Done()
	}
	return stop()
}

// background runs d beside the caller. Its context ends when d does; stop ends
// d, if ctx has not, and returns why it ended.
func background(ctx context.Context, d *demo.Demo) (running context.Context, stop func() error) {
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- d.Run(running)
	}()
	return running, func() error {
		cancel()
		return <-ended
	}
}

// announce says where the demo is.
func (f *demoFlags) announce(w io.Writer, d *demo.Demo) {
	dir, temporary := d.Data()
	if f.asJSON {
		said := map[string]any{"url": d.URL(), "data": dir, "temporary": temporary}
		if store := d.Store(); store != nil {
			said["store"], said["demo"] = store.Name, d.Name()
		}
		printJSON(w, said)
		return
	}
	note := ""
	if temporary {
		note = " (removed at the end; keep it with --data DIR)"
	}
	fmt.Fprintf(w, `The demo is running. Open

  %s

and pay at all three tills while things break. What the money says: %[1]s/demo/ledger
Data: %s%s
%sStop with Ctrl-C. More, and how to do it with curl: semel demo --help
`, d.URL(), dir, note, elsewhere(d))
}

// elsewhere is a line that says what is kept in a store, and where that is; none
// if there is no store.
func elsewhere(d *demo.Demo) string {
	store := d.Store()
	if store == nil {
		return ""
	}
	what := "Payments, orders and keys"
	if store.KeysOnly {
		what = "Keys"
	}
	return fmt.Sprintf("%s: in %s, %s, as demo %s; they stay there\n", what, store.Name, store.Where, d.Name())
}

// openBrowser shows the page if this machine has a way to. Where it has none
// the address is printed anyway.
func openBrowser(ctx context.Context, url string) {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	cmd := exec.CommandContext(ctx, program, url)
	if cmd.Start() == nil {
		go cmd.Wait() //nolint:errcheck // the browser is the user's.
	}
}

// play runs scripts against a demo of their own.
func (f *demoFlags) play(ctx context.Context, s streams) error {
	list, err := scripts.Find(f.script)
	if err != nil {
		return usagef("--script: %w", err)
	}
	if f.seed == 0 {
		f.seed = uint64(rand.Uint32()) + 1 //nolint:gosec // any seed will do.
	}
	d, err := f.start(ctx, s)
	if err != nil {
		return err
	}
	running, stop := background(ctx, d)
	if !f.asJSON {
		fmt.Fprintf(s.out, "Playing against %s, seed %d.\n%s", d.URL(), f.seed, elsewhere(d))
	}
	data, _ := d.Data()
	err = f.playAll(running, s.out, scripts.New(d.URL(), f.seed, scripts.Payer{
		Path: d.Program(), Args: []string{demoProcessName, demoPayerName}, Folder: filepath.Join(data, "payer"),
	}), list)
	return errors.Join(unlessInterrupted(ctx, err), stop())
}

// playAll plays them one after the other. The error names those that did not
// hold; why not is in what was printed.
func (f *demoFlags) playAll(ctx context.Context, w io.Writer, r *scripts.Runner, list []scripts.Script) error {
	var broken []string
	for _, script := range list {
		report, err := r.Run(ctx, script)
		if err != nil {
			return err
		}
		if !report.Holds {
			broken = append(broken, script.Name)
		}
		if f.asJSON {
			printJSON(w, report)
			continue
		}
		fmt.Fprintln(w)
		report.Print(w)
	}
	if len(broken) > 0 {
		return fmt.Errorf("%d of %d scripts did not hold: %s", len(broken), len(list), strings.Join(broken, ", "))
	}
	return nil
}
