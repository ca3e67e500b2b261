package semel

import "crypto/rand"

// Token is the random owner id of one claim. Together with the attempt it
// fences: a later claim has another one.
type Token [16]byte

// NewToken draws a token from crypto/rand.
func NewToken() Token {
	var t Token
	rand.Read(t[:]) // never returns an error (Go 1.24)
	return t
}

// Claim is the right to run one attempt, as it is shown to the store again
// in Extend and Finish.
type Claim struct {
	Scope   string
	Key     string
	Token   Token
	Attempt int64
}
