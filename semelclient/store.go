package semelclient

import (
	"bytes"
	"context"
	"iter"
	"net/http"
	"time"
)

// IntentStore keeps intents from before their first byte leaves until they are
// forgotten, and sees to it that one caller at a time is at work on each, of all
// processes that share it. It is safe for concurrent use. Errors that are not
// named below are faults of the store.
type IntentStore interface {
	// Add stores a new intent and holds it for the caller, for d at most. When
	// it returns nil, the intent is where a crash does not reach it. The error
	// matches ErrIntentKnown if the key is there already. After any error, also
	// that of a context that has ended, an intent that was there is as it was,
	// and held by whoever held it; and what this call had stored it has taken
	// back itself. Where it cannot know that it did, the text says that the
	// intent may be stored all the same.
	Add(ctx context.Context, in Intent, d time.Duration) (Hold, error)
	// Hold takes a stored intent for the caller, for d at most. Of one that is
	// settled it only returns the entry. Errors: ErrIntentHeld,
	// ErrIntentMissing, ErrIntentDamaged.
	Hold(ctx context.Context, key string, d time.Duration) (Entry, error)
	// Settle writes how the intent ended, as durably as Add, and lets go of it.
	// The error matches ErrIntentHeld if the caller does not hold it any more:
	// also if it was forgotten meanwhile, by another process, and added anew.
	Settle(ctx context.Context, h Hold, s Settlement) error
	// Release lets go of an intent that has not ended. Of one that is not held
	// any more it does nothing.
	Release(ctx context.Context, h Hold) error
	// Keys yields the keys of all stored intents, settled and not, in no
	// certain order. It goes on after an error that matches ErrIntentDamaged.
	Keys(ctx context.Context) iter.Seq2[string, error]
	// Forget removes an intent, whatever its state. Of one that is not there it
	// does nothing.
	Forget(ctx context.Context, key string) error
}

// Hold is the right to work on an intent.
type Hold struct {
	Key string
	// Token tells this hold from any other of the same intent.
	Token string
}

// Entry is a stored intent.
type Entry struct {
	Intent Intent
	Hold   Hold // empty if the intent is settled
	// Settlement is how it ended, or nil.
	Settlement *Settlement
}

// Settlement is how an intent ended.
type Settlement struct {
	Outcome   Outcome     `json:"outcome"`
	Reason    Reason      `json:"reason"`
	Status    int         `json:"status,omitempty"`
	Header    http.Header `json:"header,omitempty"`
	Body      []byte      `json:"body,omitempty"`
	Truncated bool        `json:"truncated,omitempty"`
	Replayed  bool        `json:"replayed,omitempty"`
}

// clone is a copy that shares nothing; of nil it is nil.
func (s *Settlement) clone() *Settlement {
	if s == nil {
		return nil
	}
	own := *s
	own.Header, own.Body = s.Header.Clone(), bytes.Clone(s.Body)
	return &own
}
