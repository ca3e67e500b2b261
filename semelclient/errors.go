package semelclient

import "github.com/semel-dev/semel"

// The codes of this package, each with its sentinel below.
const (
	CodeIntentInvalid semel.Code = "intent_invalid"
	CodeIntentKnown   semel.Code = "intent_known"
	CodeIntentMissing semel.Code = "intent_missing"
	CodeIntentHeld    semel.Code = "intent_held"
	CodeIntentDamaged semel.Code = "intent_damaged"
	CodeIntentStore   semel.Code = "intent_store"
	CodeGaveUp        semel.Code = "gave_up"
	CodeNoAnswer      semel.Code = "no_answer"
)

// The sentinels. All are semel.Error and match by code.
var (
	// ErrIntentInvalid is a request that cannot be an intent; its text says why.
	ErrIntentInvalid = &semel.Error{Code: CodeIntentInvalid, Text: "this cannot be an intent"}
	// ErrIntentKnown means that the store has an intent with this key.
	ErrIntentKnown = &semel.Error{Code: CodeIntentKnown, Text: "there is an intent with this key"}
	// ErrIntentMissing means that the store has no intent with this key.
	ErrIntentMissing = &semel.Error{Code: CodeIntentMissing, Text: "there is no intent with this key"}
	// ErrIntentHeld means that somebody else holds the intent, or took it.
	ErrIntentHeld = &semel.Error{Code: CodeIntentHeld, Text: "somebody else holds the intent"}
	// ErrIntentDamaged means that what is stored is not what was written. It is
	// never sent.
	ErrIntentDamaged = &semel.Error{Code: CodeIntentDamaged, Text: "the stored intent is damaged"}
	// ErrIntentStore means that the store of intents does not work.
	ErrIntentStore = &semel.Error{Code: CodeIntentStore, Text: "the store of intents cannot be used"}
	// ErrGaveUp means that a call of Do ended before it had an answer.
	ErrGaveUp = &semel.Error{Code: CodeGaveUp, Text: "gave up"}
	// ErrNoAnswer is of one attempt: no whole reply came.
	ErrNoAnswer = &semel.Error{Code: CodeNoAnswer, Text: "no whole reply came"}
)

func invalid(format string, args ...any) error {
	return semel.NewError(CodeIntentInvalid, nil, format, args...)
}

// storeFailed is err as an ErrIntentStore.
func storeFailed(err error, what string) error {
	return semel.NewError(CodeIntentStore, err, "the store of intents cannot %s", what)
}

// mayBeStored is err of an Add that cannot tell that it has left nothing.
func mayBeStored(key string, err error) error {
	return semel.NewError(CodeIntentStore, err, "the intent %s may be stored all the same, and then Recover sends it", key)
}
