package semel

import (
	"errors"
	"fmt"
)

// Code names a kind of fault. Codes are stable; texts are not.
type Code string

// The codes of this package.
const (
	CodeConfig           Code = "config"
	CodeKeyInvalid       Code = "key_invalid"
	CodeScopeInvalid     Code = "scope_invalid"
	CodeStoreUnavailable Code = "store_unavailable"
	CodeSuperseded       Code = "superseded"
	CodeStillRunning     Code = "still_running"
	CodeGoexit           Code = "goexit"
	CodeCommitRefused    Code = "commit_refused"
	CodeReplayRefused    Code = "replay_refused"
	CodeSettleRefused    Code = "settle_refused"
	CodeEraseRefused     Code = "erase_refused"
	CodeTxMisuse         Code = "tx_misuse"
)

// Error is the one error type of this module. Errors with the same code match
// under errors.Is, so test against the sentinels below.
type Error struct {
	Code Code
	Text string
	Err  error // the cause, if there is one
}

// The sentinels, one for each code.
var (
	// ErrConfig is a setting that was refused; its text names field and bound.
	ErrConfig = &Error{Code: CodeConfig, Text: "bad configuration"}
	// ErrKeyInvalid is a key that is empty or longer than MaxKeyLength.
	ErrKeyInvalid = &Error{Code: CodeKeyInvalid, Text: "bad key"}
	// ErrScopeInvalid is a scope that is empty or longer than MaxScopeLength.
	ErrScopeInvalid = &Error{Code: CodeScopeInvalid, Text: "bad scope"}
	// ErrStoreUnavailable means the store could not be asked, or did not
	// answer. Before the work nothing has run; after it the claim is left.
	ErrStoreUnavailable = &Error{Code: CodeStoreUnavailable, Text: "the store cannot be reached"}
	// ErrSuperseded is the cause of a handler's context being cancelled when
	// a later attempt exists, or may.
	ErrSuperseded = &Error{Code: CodeSuperseded, Text: "a later attempt has taken over, or may have: the lease could not be renewed"}
	// ErrStillRunning means the work is past its deadline and still running,
	// or ran into it; its claim is kept until it returns (R19).
	ErrStillRunning = &Error{Code: CodeStillRunning, Text: "the work is past its deadline and has not returned"}
	// ErrGoexit means the work ended its goroutine (runtime.Goexit) without
	// returning, so that nothing is known of it.
	ErrGoexit = &Error{Code: CodeGoexit, Text: "the work ended its goroutine without returning"}
	// ErrCommitRefused means the database refused the business transaction:
	// nothing in it took effect.
	ErrCommitRefused = &Error{Code: CodeCommitRefused, Text: "the database refused the transaction"}
	// ErrTxMisuse is what a program does wrong with a business transaction: it
	// asks for one where there is none, uses it after the handler has returned or
	// twice at one time, or sends a statement that would end it.
	ErrTxMisuse = &Error{Code: CodeTxMisuse, Text: "the business transaction cannot be used so"}
	// ErrReplayRefused means Call.BeforeReplay refused the saved reply.
	ErrReplayRefused = &Error{Code: CodeReplayRefused, Text: "the saved reply may not be shown"}
	// ErrSettleRefused means a settlement does not fit the record as it is.
	ErrSettleRefused = &Error{Code: CodeSettleRefused, Text: "the record cannot be settled so"}
	// ErrEraseRefused means a record may not be erased as it is.
	ErrEraseRefused = &Error{Code: CodeEraseRefused, Text: "the record cannot be erased"}
)

// Error returns the text and the cause.
func (e *Error) Error() string {
	if e.Err != nil {
		return "semel: " + e.Text + ": " + e.Err.Error()
	}
	return "semel: " + e.Text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches errors by code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// because returns the sentinel with a cause.
func (e *Error) because(err error) *Error {
	return &Error{Code: e.Code, Text: e.Text, Err: err}
}

// saying returns the sentinel with its text made particular.
func (e *Error) saying(format string, args ...any) *Error {
	return &Error{Code: e.Code, Text: fmt.Sprintf(format, args...)}
}

// NewError returns an error of a code with a text of its own and, unless it is
// nil, a cause. It is for the packages of this module and for stores outside
// it.
func NewError(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...), Err: cause}
}

// unavailable is err as an ErrStoreUnavailable, once.
func unavailable(err error) error {
	if errors.Is(err, ErrStoreUnavailable) {
		return err
	}
	return ErrStoreUnavailable.because(err)
}

func configError(field, problem string) error {
	return ErrConfig.saying("%s %s", field, problem)
}

// notApplied marks an error after which the work is known to have had no
// effect.
type notApplied struct{ err error }

func (n *notApplied) Error() string { return n.err.Error() }
func (n *notApplied) Unwrap() error { return n.err }

// NotApplied wraps an error that the work returns when it knows that nothing
// took effect, so that the key is released. Any other error leaves the outcome
// unknown (R1). Of nil it is nil.
func NotApplied(err error) error {
	if err == nil {
		return nil
	}
	return &notApplied{err: err}
}

// IsNotApplied reports whether err is wrapped by NotApplied. One that joins
// several is if each of them is.
func IsNotApplied(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself.
	case *notApplied:
		return true
	case *unmarkedError:
		return false
	case interface{ Unwrap() error }:
		return IsNotApplied(e.Unwrap())
	case interface{ Unwrap() []error }:
		parts := e.Unwrap()
		for _, part := range parts {
			if !IsNotApplied(part) {
				return false
			}
		}
		return len(parts) > 0
	}
	return false
}

// unmarkedError takes the mark of NotApplied off the error that it wraps: the
// attempt had no effect, but of the operation that is not known.
type unmarkedError struct{ err error }

func (u *unmarkedError) Error() string { return u.err.Error() }
func (u *unmarkedError) Unwrap() error { return u.err }

// unmarked is err without the mark of NotApplied.
func unmarked(err error) error {
	if !IsNotApplied(err) {
		return err
	}
	return &unmarkedError{err: err}
}
