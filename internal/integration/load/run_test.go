package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-dev/semel"
)

// server is one that can be restarted.
type server interface {
	Kill()
	Start() error
}

// run is one load on one store.
type run struct {
	setting

	plan   *plan
	server server           // that is restarted; nil where nothing is
	say    func(far string) // is told how far the load is, now and then
}

// play plays the run in a new folder and returns what there is to judge. The
// error is a fault of the machine.
func (r *run) play(ctx context.Context, dir string) (*evidence, error) {
	r.Journal = filepath.Join(dir, "journal")
	if err := os.WriteFile(r.Journal, nil, 0o600); err != nil {
		return nil, err
	}
	t := technologies[r.Technology]
	if err := t.prepare(ctx, r.DSN); err != nil {
		return nil, fmt.Errorf("prepare the database: %w", err)
	}
	e := &evidence{plan: r.plan, mode: modeOf(r.Mode), hold: r.Hold, rowsKept: t.driver != ""}
	if err := r.load(ctx, e); err != nil {
		return nil, err
	}
	b, err := t.open(ctx, r.DSN, 2*ownConnections)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := r.settle(ctx, e, b); err != nil {
		return nil, err
	}
	if e.records, err = b.openRecords(ctx); err != nil {
		return nil, err
	}
	if e.runs, err = readJournal(r.Journal); err != nil {
		return nil, err
	}
	if e.rowsKept {
		e.rows, err = t.rows(ctx, r.DSN)
	}
	return e, err
}

// sayEvery is after how many sendings a run says how far it is.
const sayEvery = 50_000

// load sends everything, with what strikes meanwhile.
func (r *run) load(ctx context.Context, e *evidence) error {
	f, err := startFleet(&r.setting)
	if err != nil {
		return err
	}
	d := newDriver(r.plan, r.Hold, f, r.Connections)
	d.far = func(n int) {
		for _, s := range r.plan.strikes {
			if s.at == n {
				d.strikes <- s
			}
		}
		if n > 0 && n%sayEvery == 0 {
			r.say(fmt.Sprintf("%d of %d sendings", n, len(r.plan.sendings)))
		}
	}
	struck := make(chan error, 1)
	go func() { struck <- r.strikeAll(ctx, d, e) }()
	begun := time.Now()
	d.run(ctx, workers*r.Connections)
	e.took = time.Since(begun)
	err = errors.Join(<-struck, technologies[r.Technology].count(ctx, r.DSN, &e.connections))
	if stopped := f.stop(); stopped != nil {
		d.complainf("%v", stopped)
	}
	e.take(d)
	e.recovered = d.recovered[:]
	return err
}

// strikeAll lets happen what the plan has, one after the other.
func (r *run) strikeAll(ctx context.Context, d *driver, e *evidence) error {
	for s := range d.strikes {
		if s.freeze {
			if err := d.fleet[s.worker].freeze(ctx, r.Lease+r.Lease/2); err != nil {
				return err
			}
			continue
		}
		begun := time.Now()
		stop(r.server)
		d.down()
		<-time.After(s.down)
		if err := r.server.Start(); err != nil {
			return fmt.Errorf("start the server again: %w", err)
		}
		e.down = max(e.down, time.Since(begun))
	}
	return nil
}

// stop ends a server at once: PostgreSQL in immediate mode, which is its own
// way, others by SIGKILL.
func stop(s server) {
	if p, ok := s.(interface{ StopImmediate() }); ok {
		p.StopImmediate()
		return
	}
	s.Kill()
}

// pollEvery is how often the store is asked whether a lease has run out.
const pollEvery = 50 * time.Millisecond

// settle brings about an end for what has none. Nobody runs any more. Of the
// records that are open an operator settles those that the journal does not
// know as not applied. The others would be for somebody to look into; here the
// service is started again with Resume, and everything that has no answer is
// asked for once more.
func (r *run) settle(ctx context.Context, e *evidence, b *backend) error {
	runs, err := readJournal(r.Journal)
	if err != nil {
		return err
	}
	e.runsBefore = len(runs)
	if e.open, err = r.lapsed(ctx, b); err != nil {
		return err
	}
	ask := e.unanswered()
	if len(ask) == 0 && len(e.open) == 0 {
		return nil
	}
	if err := r.settleUnrun(ctx, e, b, runs); err != nil {
		return err
	}
	again := r.setting
	again.Hold = false
	f, err := startFleet(&again)
	if err != nil {
		return err
	}
	asked := plan{seed: e.plan.seed, payments: e.plan.payments}
	for _, n := range ask {
		asked.sendings = append(asked.sendings, sending{payment: n})
	}
	d := newDriver(&asked, false, f, r.Connections)
	d.told, d.far = e.told, func(int) {}
	d.run(ctx, r.Connections)
	if stopped := f.stop(); stopped != nil {
		d.complainf("%v", stopped)
	}
	e.take(d)
	return nil
}

// lapsed lists the open records when no lease is left.
func (r *run) lapsed(ctx context.Context, b *backend) ([]semel.Record, error) {
	late := time.Now().Add(patience)
	for {
		all, err := b.openRecords(ctx)
		if err != nil {
			return nil, err
		}
		stuck := 0
		for i := range all {
			if all[i].Stuck(0) {
				stuck++
			}
		}
		if stuck == len(all) {
			return all, nil
		}
		if time.Now().After(late) {
			return nil, errors.New("a lease does not run out although nobody renews it")
		}
		<-time.After(pollEvery)
	}
}

// settleUnrun settles what has not run as not applied.
func (r *run) settleUnrun(ctx context.Context, e *evidence, b *backend, runs []effect) error {
	g, err := r.guard(b)
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for i := range runs {
		known[runs[i].Operation] = true
	}
	for i := range e.open {
		if known[e.open[i].OperationID.String()] {
			continue
		}
		// No attempt is alive, so there is nothing to wait for (M6).
		_, err := g.Settle(ctx, semel.SettleParams{
			Expect: e.open[i], As: semel.SettleNotApplied, Override: true,
			Actor: "load", Reason: "it is not in the journal, and the workers have ended",
		})
		if err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		e.settled++
	}
	return nil
}
