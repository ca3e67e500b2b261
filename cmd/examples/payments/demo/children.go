package demo

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"

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
	args := []string{d.cfg.Child, "service", "--file=" + filepath.Join(d.data, "service.db"), "--bank=" + address}
	if d.cfg.LogKeys {
		args = append(args, "--log-keys")
	}
	return args, err
}

// RunBank is the bank's process.
func RunBank(ctx context.Context, cfg ChildConfig, stdin io.Reader, stdout, stderr io.Writer) error {
	h, err := sqlstore.OpenSQLite(driver, cfg.File)
	if err != nil {
		return err
	}
	defer h.Close()
	b, err := bank.New(ctx, h.Write, bank.Config{ForgetsKeys: cfg.Forgets, Logger: logger(stderr, "bank")})
	if err != nil {
		return err
	}
	return supervise.Serve(ctx, cfg.Listen, b.Handler(), stdin, stdout)
}

// RunService is the payment service's process.
func RunService(ctx context.Context, cfg ChildConfig, stdin io.Reader, stdout, stderr io.Writer) error {
	h, err := sqlstore.OpenSQLite(driver, cfg.File)
	if err != nil {
		return err
	}
	defer h.Close()
	s, err := service.New(ctx, h, service.Config{Bank: cfg.Bank, LogKeys: cfg.LogKeys, Logger: logger(stderr, "service")})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.Run(ctx) //nolint:errcheck // it ends with ctx and logs what it meets.
	return supervise.Serve(ctx, cfg.Listen, s.Handler(), stdin, stdout)
}

// logger writes lines that GET /demo/log can assign to requests: all of them,
// since a replay is worth seeing here.
func logger(w io.Writer, process string) *slog.Logger {
	lines := slog.New(service.Lines{Handler: slog.NewJSONHandler(w, &slog.HandlerOptions{
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
