package semel

import (
	"context"
	"crypto/sha256"
	"errors"
)

// BytesPolicy is the fingerprint policy of FingerprintOf: the parts as they
// are.
const BytesPolicy = "bytes/1"

// FingerprintOf returns the fingerprint of a call that has no HTTP request:
// a digest over the length-prefixed parts. Put in everything that makes two
// calls different ones.
func FingerprintOf(parts ...[]byte) Fingerprint {
	var b []byte
	for _, part := range parts {
		b = appendFramed(b, part)
	}
	sum := Digest(sha256.Sum256(b))
	return Fingerprint{Raw: sum, Meaning: sum, Policy: BytesPolicy}
}

// Do is Run for work that is a function with a result: what it returns is
// saved and given to every repeat. An error of the work leaves the outcome
// unknown unless it is wrapped by NotApplied, and is returned. A refusal that
// should be remembered, such as a declined card, is a result and not an error.
// No error does not mean done: see [Result.Done]. Errors are the work's own,
// those of Run, or both joined. IsNotApplied is true of one only if the key was
// released: work that had no effect itself may follow an attempt that had, or its
// end may not have been saved.
func (g *Guard) Do(ctx context.Context, call Call, work func(ctx context.Context) ([]byte, error)) (Result, error) {
	var workErr error
	res, err := g.Run(ctx, call, func(ctx context.Context) Completion {
		body, err := work(ctx)
		switch {
		case err == nil:
			return Completion{Verdict: VerdictKeep, Reply: Reply{Body: body}}
		case IsNotApplied(err):
			workErr = err
			return Completion{Verdict: VerdictNotApplied}
		}
		workErr = err
		return Completion{Verdict: VerdictUnknown}
	})
	if errors.Is(err, ErrStillRunning) {
		return res, err // the work has not returned: workErr is still its own
	}
	if err != nil {
		workErr = errors.Join(workErr, err)
	}
	if res.Outcome != OutcomeReleased {
		workErr = unmarked(workErr)
	}
	return res, workErr
}
