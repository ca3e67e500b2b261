package semel

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// SweeperConfig holds the optional settings of a Sweeper.
type SweeperConfig struct {
	// Interval between sweeps. Default DefaultSweepInterval.
	Interval time.Duration
	// Batch is the most records one statement removes. Default
	// DefaultSweepBatch.
	Batch int
	// StoreTimeout bounds each batch. Default DefaultStoreTimeout.
	StoreTimeout time.Duration
	// Logger gets faults, which do not stop the sweeper. Default
	// slog.Default().
	Logger *slog.Logger
}

// Sweeper removes expired records. Nothing depends on it but disk space: an
// expired record counts as absent, swept or not.
type Sweeper struct {
	store Store
	cfg   SweeperConfig
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
	return &Sweeper{store: store, cfg: cfg}, nil
}

// Run sweeps once at every interval until ctx ends, and returns why it ended.
// A store that cannot be reached is logged and tried again.
func (s *Sweeper) Run(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if n, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Error("semel: sweep failed", "removed", n, "error", err)
		}
	}
}

// Sweep removes all that is expired now, batch by batch, and returns how many
// records that were, also with an error, which matches ErrStoreUnavailable.
func (s *Sweeper) Sweep(ctx context.Context) (int, error) {
	total := 0
	for {
		n, err := s.sweepBatch(ctx)
		total += n
		if err != nil {
			return total, unavailable(err)
		}
		if n < s.cfg.Batch {
			return total, nil
		}
	}
}

func (s *Sweeper) sweepBatch(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StoreTimeout)
	defer cancel()
	return s.store.Sweep(ctx, s.cfg.Batch)
}
