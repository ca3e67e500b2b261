package semel

import "time"

// The protocol of a record, as pure functions over a record that was just
// read, with Now set to the store's clock. A store runs them between its read
// and its write and makes the two atomic; this file is then the only place
// that knows the rules. The state machine is drawn in docs/guarantees.md.

// Begin applies p to the record and returns the answer to it, and whether the
// record changed and has to be written. A record that does not exist is the
// zero Record with only Now set.
func (r *Record) Begin(p BeginParams) (res BeginResult, changed bool) {
	if !r.claimedBy(p.Token) && !r.Expired() {
		res.From = r.State
	}
	res.Outcome, changed = r.begin(p)
	if res.Outcome != BeginClaimed {
		res.From = StateAbsent
	}
	res.Record = *r
	return res, changed
}

func (r *Record) begin(p BeginParams) (outcome BeginOutcome, changed bool) {
	if p.Force != nil {
		return r.beginForced(p)
	}
	if r.claimedBy(p.Token) {
		return r.beginAgain(p)
	}
	if r.State == StateAbsent || r.Expired() {
		r.newLife(p)
		return BeginClaimed, true
	}
	// Mismatch before busy: nobody waits for a request that is not theirs.
	if r.Credential != p.Credential || !r.Fingerprint.Same(p.Fingerprint) {
		return BeginMismatch, false
	}
	switch r.State {
	case StateDone:
		return BeginReplay, false
	case StateReleased:
		r.ReplyStarted = false
		r.claim(p)
		return BeginClaimed, true
	case StateRunning:
		if r.LeaseLeft() > 0 {
			return BeginBusy, false
		}
	}
	if !r.mayResume(p.ResumeWithin) {
		return BeginUnknown, false
	}
	// An attempt that only lapsed has had no effect if all of it was in the
	// transaction that is refused from now on (M2). One that ended by saying
	// that it does not know may have.
	r.Open = r.Open || !r.AllInTx || r.State == StateUnknown
	r.claim(p)
	return BeginClaimed, true
}

// present is the answer to whoever may not claim the record as it is now.
func (r *Record) present() BeginOutcome {
	switch {
	case r.State == StateDone:
		return BeginReplay
	case r.State == StateReleased:
		return BeginReleased
	case r.State == StateRunning && r.LeaseLeft() > 0:
		return BeginBusy
	}
	return BeginUnknown
}

// beginAgain answers a token that has had its claim.
func (r *Record) beginAgain(p BeginParams) (BeginOutcome, bool) {
	if r.State != StateRunning {
		return r.present(), false
	}
	r.renew(p.Lease)
	return BeginClaimed, true
}

// beginForced is the first half of a settlement.
func (r *Record) beginForced(p BeginParams) (BeginOutcome, bool) {
	if r.State == StateRunning && r.Token == p.Token {
		return r.beginAgain(p)
	}
	if r.State == StateAbsent {
		return BeginReleased, false // there is nothing to settle, as after a release
	}
	if at := r.present(); at != BeginUnknown {
		return at, false
	}
	if r.Attempt != p.Force.Attempt || r.Token != p.Force.Token || p.Force.QuietFor > 0 && r.AttemptAge() < p.Force.QuietFor {
		return BeginUnknown, false
	}
	// Who takes over leaves the earlier attempt open until the Finish that
	// settles: the settler may die in between.
	r.Open = true
	r.claim(p)
	return BeginClaimed, true
}

// mayResume reports whether an attempt with no known end may run again, which
// it may within so long of the first start.
func (r *Record) mayResume(within time.Duration) bool {
	if r.ReplyStarted || within == 0 {
		return false
	}
	return within == Forever || r.Now.Sub(r.FirstStarted) <= within
}

// newLife starts the record of a key that is new, or new again. Only the
// generation outlives its row.
func (r *Record) newLife(p BeginParams) {
	fresh := Record{
		Scope:        p.Scope,
		Key:          p.Key,
		Generation:   r.Generation,
		OperationID:  p.OperationID,
		Fingerprint:  p.Fingerprint,
		Credential:   p.Credential,
		Trace:        p.Trace,
		Created:      r.Now,
		FirstStarted: r.Now,
		Now:          r.Now,
	}
	if r.Generation > 0 {
		fresh.OperationID = r.OperationID
	}
	*r = fresh
	r.claim(p)
}

// claim makes p's token the owner of the next attempt.
func (r *Record) claim(p BeginParams) {
	r.State = StateRunning
	r.Token = p.Token
	r.Attempt++
	r.AllInTx = p.AllInTx
	r.Claimed = r.Now
	r.renew(p.Lease)
	r.Finished, r.Expires = time.Time{}, time.Time{}
	r.Reply, r.ReplyKept = Reply{}, false
}

func (r *Record) renew(lease time.Duration) {
	r.Renewed = r.Now
	r.LeaseEnd = r.Now.Add(lease)
}

// Extend applies p for the holder of c and reports how the record took it and
// whether it changed.
func (r *Record) Extend(c Claim, p ExtendParams) (held Held, changed bool) {
	if !r.heldBy(c) {
		return r.held(HeldSuperseded), false
	}
	switch r.State {
	case StateRunning:
		r.renew(p.Lease)
		r.ReplyStarted = r.ReplyStarted || p.ReplyStarted
		return r.held(HeldYes), true
	case StateUnknown:
		changed = p.ReplyStarted && !r.ReplyStarted
		r.ReplyStarted = r.ReplyStarted || p.ReplyStarted
		return r.held(HeldYes), changed
	}
	return r.held(HeldFinal), false
}

// Finish applies p for the holder of c and reports how the record took it and
// whether it changed. Released on an open record is stored as unknown: this
// attempt knows its own end, not the earlier ones' (M2). Any other state to
// finish to is refused as HeldFinal.
func (r *Record) Finish(c Claim, p FinishParams) (held Held, changed bool) {
	if !r.heldBy(c) {
		return r.held(HeldSuperseded), false
	}
	to := p.To
	if to != StateDone && to != StateReleased && to != StateUnknown {
		return r.held(HeldFinal), false
	}
	if to == StateReleased && r.Open && p.Settlement == nil {
		to = StateUnknown
	}
	keep := to == StateDone && p.KeepReply
	switch r.State {
	case StateDone, StateReleased:
		if r.State == to && r.ReplyKept == keep {
			return r.held(HeldYes), false
		}
		return r.held(HeldFinal), false
	case StateUnknown:
		if to == StateUnknown {
			return r.held(HeldYes), false
		}
	}
	r.State = to
	r.Finished = r.Now
	if to == StateDone || to == StateReleased {
		r.Expires = r.Now.Add(p.Retention)
	}
	r.Reply, r.ReplyKept = Reply{}, keep
	if keep {
		r.Reply = p.Reply
	} else if to == StateDone {
		r.Reply.Status = p.Reply.Status
	}
	if s := p.Settlement; s != nil {
		r.settle(s, to)
	}
	return r.held(HeldYes), true
}

// settle closes what earlier attempts left open.
func (r *Record) settle(s *Settlement, to State) {
	r.Open = to == StateUnknown
	if to == StateReleased && !s.StartOver.IsZero() {
		r.Generation++
		r.OperationID = s.StartOver
	}
}

// Sweep reports whether the record may be removed now and what is to remain
// of it: a tombstone that only remembers its raised generation, or nothing.
func (r *Record) Sweep() (remove, tombstone bool) {
	if !r.Expired() {
		return false, false
	}
	if r.Generation == 0 {
		return true, false
	}
	*r = Record{
		Scope:       r.Scope,
		Key:         r.Key,
		Generation:  r.Generation,
		OperationID: r.OperationID,
		Created:     r.Created,
		Now:         r.Now,
	}
	return true, true
}

// Erase drops the saved reply of a done record, expired or not, and reports
// whether the record changed. Its status stays, and all else.
func (r *Record) Erase() (res EraseResult, changed bool) {
	switch {
	case r.State == StateRunning || r.State == StateUnknown:
		res.Outcome = EraseRefused
	case r.State != StateDone || !r.ReplyKept:
		res.Outcome = EraseNothing
	default:
		res.Outcome, changed = EraseDone, true
		r.Reply, r.ReplyKept = Reply{Status: r.Reply.Status}, false
	}
	res.Record = *r
	return res, changed
}

// claimedBy reports whether the record's latest claim is t's.
func (r *Record) claimedBy(t Token) bool { return r.State != StateAbsent && r.Token == t }

// heldBy reports whether c is the record's latest claim. Lapsed does not
// matter: only a later attempt fences (R16).
func (r *Record) heldBy(c Claim) bool {
	return r.claimedBy(c.Token) && r.Attempt == c.Attempt
}

func (r *Record) held(s HeldStatus) Held { return Held{Status: s, State: r.State} }
