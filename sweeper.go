package semel

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// SweepScheduler is the ability of a store to share one schedule among all that
// sweep it, and to tell how far behind they are.
type SweepScheduler interface {
	// SweepTurn takes the caller's turn to sweep and returns true, unless
	// somebody has taken one less than d ago on the store's clock. A turn in
	// the future, which a clock that was set back leaves, counts as none.
	SweepTurn(ctx context.Context, d time.Duration) (bool, error)

	// SweepLag returns how long ago the record expired that is still there and
	// expired first. It is zero where there is none.
	SweepLag(ctx context.Context) (time.Duration, error)
}

// SweeperConfig holds the optional settings of a Sweeper.
type SweeperConfig struct {
	// Interval between sweeps, give or take a tenth, by which sweepers that
	// were started together come apart. Default DefaultSweepInterval.
	Interval time.Duration
	// Batch is the most records one statement removes. Default
	// DefaultSweepBatch.
	Batch int
	// StoreTimeout bounds each batch. Default DefaultStoreTimeout.
	StoreTimeout time.Duration
	// Observer is told of each sweep, with the lag and with what is stuck.
	// Default none.
	Observer Observer
	// Logger gets faults, which do not stop the sweeper. Default
	// slog.Default().
	Logger *slog.Logger
}

// Sweeper removes expired records. Nothing depends on it but disk space: an
// expired record counts as absent, swept or not. Any number may run on one
// store. Where that is a SweepScheduler one of them is at work in each interval,
// unless it needs longer than that; elsewhere they share the work.
type Sweeper struct {
	store     Store
	scheduler SweepScheduler // nil if the store is none
	lister    Lister         // the same
	cfg       SweeperConfig
}

// NewSweeper returns a sweeper for store. It starts nothing: see Run. Errors
// match ErrConfig.
func NewSweeper(store Store, cfg SweeperConfig) (*Sweeper, error) {
	if store == nil {
		return nil, configError("store", "is required")
	}
	if err := checkDuration("Interval", cfg.Interval); err != nil {
		return nil, err
	}
	if err := checkDuration("StoreTimeout", cfg.StoreTimeout); err != nil {
		return nil, err
	}
	if cfg.Batch < 0 {
		return nil, configError("Batch", fmt.Sprintf("is %d; it must be positive", cfg.Batch))
	}
	if cfg.Interval == 0 {
		cfg.Interval = DefaultSweepInterval
	}
	if cfg.Batch == 0 {
		cfg.Batch = DefaultSweepBatch
	}
	if cfg.StoreTimeout == 0 {
		cfg.StoreTimeout = DefaultStoreTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	scheduler, _ := As[SweepScheduler](store)
	lister, _ := As[Lister](store)
	return &Sweeper{store: store, scheduler: scheduler, lister: lister, cfg: cfg}, nil
}

// jitter is the part of the interval by which it varies, either way.
const jitter = 10

// Run sweeps once at every interval until ctx ends, and returns why it ended.
// The first sweep comes within one interval. A store that cannot be reached is
// logged and tried again.
func (s *Sweeper) Run(ctx context.Context) error {
	next := time.NewTimer(rand.N(s.cfg.Interval))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-next.C:
		}
		s.pass(ctx)
		next.Reset(s.shortest() + rand.N(2*s.cfg.Interval/jitter+1))
	}
}

// shortest is the least time between two sweeps of one sweeper. A turn lasts
// no longer, so that nobody is kept waiting by their own.
func (s *Sweeper) shortest() time.Duration { return s.cfg.Interval - s.cfg.Interval/jitter }

// pass sweeps, if it is this sweeper's turn, and tells the observer.
func (s *Sweeper) pass(ctx context.Context) {
	start := time.Now()
	e := Event{Kind: EventSweep, Lag: -1, Stuck: -1}
	e.Removed, e.Err = s.sweepInTurn(ctx)
	if e.Err == nil && s.scheduler != nil {
		e.Lag, e.Err = s.lag(ctx)
	}
	if e.Err == nil && s.lister != nil && s.cfg.Observer != nil {
		e.Stuck, e.Err = s.stuck(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	if e.Err != nil {
		s.cfg.Logger.Error("semel: sweep failed", "removed", e.Removed, "error", e.Err)
	}
	if s.cfg.Observer != nil {
		e.Duration = time.Since(start)
		s.cfg.Observer.Observe(ctx, e)
	}
}

func (s *Sweeper) sweepInTurn(ctx context.Context) (int, error) {
	if s.scheduler != nil {
		if mine, err := s.turn(ctx); err != nil || !mine {
			return 0, err
		}
	}
	return s.Sweep(ctx)
}

func (s *Sweeper) turn(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StoreTimeout)
	defer cancel()
	return s.scheduler.SweepTurn(ctx, s.shortest())
}

func (s *Sweeper) lag(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StoreTimeout)
	defer cancel()
	lag, err := s.scheduler.SweepLag(ctx)
	if err != nil {
		return -1, err
	}
	return lag, nil
}

// stuckPage is how many records are looked at in one call. What has run for
// DefaultStuckAfter and is no more than slow comes before what is stuck.
const stuckPage = 100

// stuck returns how long ago the oldest stuck operation first started.
func (s *Sweeper) stuck(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StoreTimeout)
	defer cancel()
	all, err := ListStuck(ctx, s.lister, ListParams{OlderThan: DefaultStuckAfter, Limit: stuckPage})
	switch {
	case err != nil:
		return -1, err
	case len(all) == 0:
		return 0, nil
	}
	return all[0].Now.Sub(all[0].FirstStarted), nil
}

// Sweep removes all that is expired now, batch by batch, and returns how many
// records that were. It asks for no turn. After each batch it rests for as long
// as that took, so that a store with one writer is never more than half its. Errors match
// ErrStoreUnavailable.
func (s *Sweeper) Sweep(ctx context.Context) (int, error) {
	total := 0
	for {
		start := time.Now()
		n, err := s.sweepBatch(ctx)
		total += n
		if err != nil {
			return total, unavailable(err)
		}
		if n < s.cfg.Batch {
			return total, nil
		}
		select {
		case <-ctx.Done():
			return total, context.Cause(ctx)
		case <-time.After(time.Since(start)):
		}
	}
}

func (s *Sweeper) sweepBatch(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StoreTimeout)
	defer cancel()
	return s.store.Sweep(ctx, s.cfg.Batch)
}
