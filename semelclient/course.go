package semelclient

import (
	"time"
)

// course is what is known of an intent in the course of one Do. It decides what
// comes next and does nothing itself.
type course struct {
	maxAttempts int
	mayRenew    bool // Config.AuthorizeFunc is set

	// open: an attempt, of this process or an earlier one, has no known end.
	// Only a reply that is the key's own closes it (M2 is the same rule
	// on the server).
	open      bool
	tries     int  // begun
	attempts  int  // of those, written to a connection
	failures  int  // in a row, which the waits grow with
	confirmed bool // a refusal that does not say whose it is was looked at twice
	renewed   bool // the last attempt had a renewed credential
	followed  int  // redirects in a row
}

// maxFollowed is how many redirects in a row are followed.
const maxFollowed = 3

// move is what comes next.
type move struct {
	done bool
	// outcome and reason are the end, if it is done, and else what to say if
	// there is no time for what comes next.
	outcome Outcome
	reason  Reason

	act       act
	wait      time.Duration // at least
	backoff   int           // which wait of the policy comes on top; 0 is none
	throttled bool
	budgeted  bool // it costs the budget
}

// ended is the move that ends here with what v says, as far as it holds.
func (c *course) ended(v verdict) move {
	m := move{done: true, outcome: v.outcome, reason: v.reason}
	if v.outcome == NotApplied && !v.certain && c.open {
		m.outcome = Unknown
	}
	return m
}

// next takes the verdict on an attempt, and how often it was written to a
// connection, and says what comes next.
func (c *course) next(v verdict, written int) move {
	c.tries++
	c.attempts += written
	renewed := c.renewed
	c.renewed = false
	if v.open {
		c.open = true
	}
	if v.act != actFollow {
		c.followed = 0
	}
	stop := c.ended(v)
	if c.tries >= c.maxAttempts {
		return c.spent(v)
	}
	switch v.act {
	case actRenew:
		if !c.mayRenew || renewed {
			return stop
		}
		c.renewed = true
		return c.onward(v, move{act: actRenew})
	case actFollow:
		c.followed++
		if c.followed > maxFollowed {
			return stop
		}
		return c.onward(v, move{act: actFollow})
	case actConfirm:
		if !c.open || c.confirmed {
			return stop
		}
		c.confirmed = true
		c.failures++
		return c.onward(v, move{act: actAgain, backoff: c.failures, budgeted: true})
	case actPoll:
		c.failures++
		return c.onward(v, move{act: actPoll, backoff: c.failures})
	case actAgain:
		c.failures++
		return c.onward(v, move{act: actAgain, backoff: c.failures, budgeted: true})
	case actStop:
	}
	return stop
}

// spent ends a course whose attempts are used up. What the last one says may
// still be an end.
func (c *course) spent(v verdict) move {
	m := c.ended(v)
	switch v.act {
	case actAgain, actPoll:
		m.outcome, m.reason = c.known(), ReasonGaveUp
	case actStop, actRenew, actFollow, actConfirm:
	}
	return m
}

// known is what is known where there is no more time: if no attempt is open, none
// had an effect.
func (c *course) known() Outcome {
	if c.open {
		return Unknown
	}
	return NotApplied
}

// onward completes a move that is not the end.
func (c *course) onward(v verdict, m move) move {
	m.outcome, m.reason = c.known(), ReasonGaveUp
	m.wait, m.throttled = v.wait, v.throttled
	return m
}
