package brokentest

// Mistake is one way to break the API.
type Mistake string

// None breaks nothing.
const None Mistake = ""

// The mistakes.
const (
	IgnoresTheKey          Mistake = "ignores the key"
	LooksFirst             Mistake = "looks first and saves the key afterwards"
	IgnoresTheBody         Mistake = "gives the first reply to any body"
	TakesTheBodyIntoTheKey Mistake = "takes the body into the key"
	FreesTheKeyOnMisuse    Mistake = "frees the key when it is misused"
	KeepsFewKeys           Mistake = "keeps few keys"
	ReplaysOnce            Mistake = "replays once and forgets"
	ComparesKeysCaseBlind  Mistake = "compares keys case-blind"
	CutsKeysOff            Mistake = "cuts keys off"
	KeepsTheQuotes         Mistake = "keeps the quotes with the key"
	TakesTheFirstKey       Mistake = "takes the first of two keys"
	AllowsNoKey            Mistake = "allows requests without a key"
	SharesKeysAmongCallers Mistake = "shares keys among callers"
	RepliesToAnybody       Mistake = "replies to anybody who has a key"
	FailsWhenBusy          Mistake = "fails when the key is in use"
	StopsWithItsClient     Mistake = "forgets the key when its client has left"
	TakesHalfABody         Mistake = "takes half a body for the whole"
	ForgetsLocation        Mistake = "forgets Location in a replay"
	OrdersByGet            Mistake = "places an order for a GET as well"
)
