package semel

// Mode says where the reply is saved.
type Mode uint8

// The modes.
const (
	// Leased saves the reply in a commit of its own, after the work.
	Leased Mode = iota
	// Joined saves the reply in the transaction of the work, which the work
	// gets from the store's Tx function. It needs a store that is a Joiner.
	Joined
	// Atomic claims the key there too: one commit in all, and a crash leaves
	// nothing. It is for work whose effects are all in that transaction, and
	// needs a store that is an AtomicJoiner. A repeat that comes while the
	// first attempt runs is told OutcomeInProgress, also if it is another
	// request.
	Atomic
)

// String returns "leased", "joined" or "atomic", and of no mode "invalid".
func (m Mode) String() string {
	switch m {
	case Leased:
		return "leased"
	case Joined:
		return "joined"
	case Atomic:
		return "atomic"
	}
	return "invalid"
}

// Call is one request to run something once.
type Call struct {
	// Scope and Key name the operation; both are required.
	Scope string
	Key   string
	// Fingerprint tells this request from others under the same key.
	Fingerprint Fingerprint
	// Refingerprint returns the request's fingerprint under an older policy
	// that a record was saved with, or false if it is not loaded any more
	// (R21). Nil knows no older policy.
	Refingerprint func(policy string) (Fingerprint, bool)
	// Credential is an HMAC of the caller's credential, where the scope does
	// not tell callers apart (R4).
	Credential Digest
	// Trace is a W3C traceparent, kept with the first attempt.
	Trace string
	// Route is passed on to the Observer with what becomes of the call: the
	// template of a route, such as "/orders/{id}". It is one of few, and
	// never made of what a request says.
	Route string
	// BeforeReplay, if set, may refuse a saved reply to this caller (R27).
	BeforeReplay func(Record) error
	// Mode is Leased, Joined or Atomic.
	Mode Mode
	// AllInTx declares that every effect of the work is in the joined
	// transaction, so that a rollback is known to have undone it all (M1). It
	// goes with Joined; of Atomic it is true without being said.
	AllInTx bool
}

func (c *Call) check() error {
	switch {
	case c.Key == "":
		return ErrKeyInvalid.saying("the key is empty")
	case len(c.Key) > MaxKeyLength:
		return ErrKeyInvalid.saying("the key has %d bytes; the most is %d", len(c.Key), MaxKeyLength)
	case c.Scope == "":
		return ErrScopeInvalid.saying("the scope is empty")
	case len(c.Scope) > MaxScopeLength:
		return ErrScopeInvalid.saying("the scope has %d bytes; the most is %d", len(c.Scope), MaxScopeLength)
	case c.Fingerprint.problem() != "":
		return configError("Fingerprint", "is required, or any request under the key would pass for this one: "+c.Fingerprint.problem())
	case c.AllInTx && c.Mode != Joined:
		return configError("AllInTx", "goes with Mode Joined only")
	}
	return nil
}

// allInTx reports whether every effect of the work is in its transaction.
func (c *Call) allInTx() bool { return c.Mode == Atomic || c.Mode == Joined && c.AllInTx }

func (c *Call) policyUnknown(policy string) bool {
	if policy == c.Fingerprint.Policy {
		return false
	}
	if c.Refingerprint == nil {
		return true
	}
	_, ok := c.Refingerprint(policy)
	return !ok
}
