package demo

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/bank"
	"github.com/semel-dev/semel/cmd/examples/payments/service"
	"github.com/semel-dev/semel/cmd/examples/payments/supervise"
	"github.com/semel-dev/semel/sqlstore"
)

// ChildConfig is what a child process is told on its command line.
type ChildConfig struct {
	Listen  string // where to listen, "HOST:PORT"
	File    string // of its database
	Bank    string // the bank's address; the service's only
	Demo    string // what the demo is called in its store; the service's only
	Forgets bool   // the bank's only
	LogKeys bool   // the service's only
}

func (d *Demo) bankArgs(context.Context) ([]string, error) {
	args := []string{d.cfg.Child, "bank", "--file=" + filepath.Join(d.data, "bank.db")}
	if d.cfg.BankForgets {
		args = append(args, "--forgets")
	}
	return args, nil
}

func (d *Demo) serviceArgs(ctx context.Context) ([]string, error) {
	address, err := d.bank.Wait(ctx)
	args := []string{d.cfg.Child, "service", "--file=" + filepath.Join(d.data, serviceFile), "--bank=" + address}
	if d.name != "" {
		args = append(args, "--demo="+d.name)
	}
	if d.cfg.LogKeys {
		args = append(args, "--log-keys")
	}
	return args, err
}

// RunBank is the bank's process.
func RunBank(ctx context.Context, cfg ChildConfig, stdin io.Reader, stdout, stderr io.Writer) error {
	ctx = supervise.Until(ctx, stdin)
	h, err := sqlstore.OpenSQLite(driver, cfg.File)
	if err != nil {
		return err
	}
	defer h.Close()
	b, err := bank.New(ctx, h.Write, bank.Config{ForgetsKeys: cfg.Forgets, Logger: logger(stderr, "bank")})
	if err != nil {
		return err
	}
	return supervise.Serve(ctx, cfg.Listen, b.Handler(), stdout)
}

// tryStoreEvery is waited before a store that could not be used is tried again.
const tryStoreEvery = 250 * time.Millisecond

// RunService is the payment service's process, over a store, or with none over
// its file. A store that cannot be used is waited for: it was there when the
// demo started.
func RunService(ctx context.Context, cfg ChildConfig, store *Store, stdin io.Reader, stdout, stderr io.Writer) error {
	ctx = supervise.Until(ctx, stdin)
	log := logger(stderr, "service")
	open := openFile
	if store != nil {
		open = store.Open
	}
	s, closing, err := cfg.startService(ctx, open, log)
	for store != nil && ctx.Err() == nil && errors.Is(err, semel.ErrStoreUnavailable) {
		log.WarnContext(ctx, "the store cannot be used so far", "store", store.Name, "error", err)
		supervise.SayWaits(stdout, store.Name)
		payments.Pause(ctx, tryStoreEvery)
		s, closing, err = cfg.startService(ctx, open, log)
	}
	if err != nil {
		return err
	}
	defer closing()
	go s.Run(ctx) //nolint:errcheck // it ends with ctx and logs what it meets.
	return supervise.Serve(ctx, cfg.Listen, s.Handler(), stdout)
}

// startService makes the service. Closing ends what it stands on.
func (c ChildConfig) startService(ctx context.Context, open OpenFunc, log *slog.Logger) (s *service.Service, closing func(), err error) {
	place, closing, err := open(ctx, c.File, log)
	if err != nil {
		return nil, nil, err
	}
	s, err = service.New(ctx, place, service.Config{Bank: c.Bank, Demo: c.Demo, LogKeys: c.LogKeys, Logger: log})
	if err != nil {
		closing()
		return nil, nil, err
	}
	return s, closing, nil
}

// logger writes lines that GET /demo/log can assign to requests: all of them,
// since a replay is worth seeing here.
func logger(w io.Writer, process string) *slog.Logger {
	lines := slog.New(payments.NumberedLines{Handler: slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration {
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			return a
		},
	})})
	return lines.With("process", process)
}
