package semel

import "time"

// The defaults of the whole project, in one place. There is none for scope,
// recovery and store: those are required choices.
const (
	DefaultService         = "semel"
	DefaultLease           = 30 * time.Second
	DefaultRetention       = 24 * time.Hour
	DefaultHandlerDeadline = 5 * time.Minute
	DefaultStoreTimeout    = 5 * time.Second
	DefaultSettleDelay     = time.Minute
	DefaultStuckAfter      = time.Hour
	DefaultSweepInterval   = time.Minute
	DefaultSweepBatch      = 1000 // records

	DefaultMaxRequestBody  = 1 << 20   // bytes
	DefaultMaxReplyBody    = 1 << 20   // bytes kept for replay
	DefaultByteBudget      = 256 << 20 // bytes of bodies in memory at a time
	DefaultBodyReadTimeout = 30 * time.Second
)

// Limits of the contract. MaxKeyLength is that of the HTTP header as well.
const (
	MaxKeyLength   = 255  // bytes
	MaxScopeLength = 1024 // bytes

	// MinLease is the shortest lease that New accepts.
	MinLease = 100 * time.Millisecond

	// maxDuration is the longest setting, so that no sum of them is more than a
	// time.Duration holds.
	maxDuration = Forever / 4
)
