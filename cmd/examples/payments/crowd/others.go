package crowd

import (
	"context"
	"time"
)

// seen is what a run needs of a request in the front's log, which leaves out
// those of the crowd.
type seen struct {
	ID           int64     `json:"id"`
	Time         time.Time `json:"time"`
	Door         string    `json:"door"`
	Milliseconds int64     `json:"ms"`
	Ended        bool      `json:"ended"`
}

// since reports whether it may have moved money after t: the bank may be busy
// with a request that has ended.
func (s seen) since(t time.Time) bool {
	end := s.Time.Add(time.Duration(s.Milliseconds) * time.Millisecond)
	return !s.Ended || end.Add(settleWithin).After(t)
}

// othersPaid reports whether anybody else may have paid since t. Whoever calls
// themselves [payments.Crowd] is not seen.
func (c *Crowd) othersPaid(ctx context.Context, t time.Time) (bool, error) {
	var log []seen
	if err := c.get(ctx, "/demo/log", &log); err != nil {
		return false, err
	}
	for i, s := range log {
		// Before the first there may have been a payment that is forgotten.
		forgotten := i == 0 && s.ID > 1
		if (s.Door != "" || forgotten) && s.since(t) {
			return true, nil
		}
	}
	return false, nil
}
