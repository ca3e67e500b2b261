package payments

// The log lines from which the page draws what happened: the messages with
// which the processes write them and the page knows them again. The front
// writes the first ones.
const (
	LineRequestPassed  = "request passed on"
	LineRequestLost    = "request lost"
	LineRequestRefused = "refused at the front"
	LineReplyPassed    = "reply passed on"
	LineReplyLost      = "reply lost"
	LineBroke          = "connection to the process broke"
	LineClientGone     = "the client has gone"
	LineEnded          = "process ended" // of the supervisor

	// Of the payment service.
	LineSemel        = "semel: event" // what Semel's store has said
	LineLooked       = "looked for the key"
	LineSavedKey     = "saved the key"
	LineAsksBank     = "asks the bank"
	LineBankAnswered = "the bank answered"
	LineBankFailed   = "the bank gave no usable answer"
	LinePaid         = "paid"
	LineNotSaved     = "charged and not saved"

	// Of the bank, for each time that it was asked, with its answer.
	LineCharge = "charge"
)

// What the bank answers in a LineCharge, where it matters whether money moved.
const (
	ChargeTaken = "taken"
	ChargeKnown = "already taken"
)

// HowKilled is how a process ended that was killed, in a LineEnded: os.ProcessState
// says so.
const HowKilled = "signal: killed"
