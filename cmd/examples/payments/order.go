package payments

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxAmount is the most that one order may take, in minor units.
const MaxAmount = 99_999_999

// MaxRecipientLength is the longest recipient id, in bytes.
const MaxRecipientLength = 255

// The recipients with a behaviour of their own. Neither is ever paid, so an
// order to them is left out of the ledger's orders.
const (
	RecipientDeclined  = "r_declined"
	RecipientBankError = "r_bank_error"
)

// Order is what a client asks to be paid.
type Order struct {
	Amount      int64  `json:"amount"`      // minor units, 1 to MaxAmount
	Currency    string `json:"currency"`    // ISO 4217, three upper-case letters
	RecipientID string `json:"recipientId"` // 1 to MaxRecipientLength bytes
}

// Payable reports whether the bank would take the money when nothing is broken.
func (o Order) Payable() bool {
	return o.RecipientID != RecipientDeclined && o.RecipientID != RecipientBankError
}

// ParseOrder reads an order strictly: each member once, by its exact name and
// with its own type, and no others. The problem names the field.
func ParseOrder(contentType string, body []byte) (Order, *Problem) {
	if p := CheckJSON(contentType); p != nil {
		return Order{}, p
	}
	var in struct {
		Amount      *int64  `json:"amount"`
		Currency    *string `json:"currency"`
		RecipientID *string `json:"recipientId"`
	}
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); err != nil {
		return Order{}, badJSON(err)
	}
	switch {
	case in.Amount == nil:
		return Order{}, invalid("amount", "is missing: an integer in minor units, 2500 for 25.00")
	case in.Currency == nil:
		return Order{}, invalid("currency", `is missing: three upper-case letters, such as "USD"`)
	case in.RecipientID == nil:
		return Order{}, invalid("recipientId", `is missing: whom to pay, such as "r_123"`)
	}
	o := Order{Amount: *in.Amount, Currency: *in.Currency, RecipientID: *in.RecipientID}
	return o, o.check()
}

func (o Order) check() *Problem {
	switch {
	case o.Amount < 1 || o.Amount > MaxAmount:
		return invalid("amount", fmt.Sprintf("is %d; it must be from 1 to %d minor units", o.Amount, MaxAmount))
	case !isCurrency(o.Currency):
		return invalid("currency", fmt.Sprintf("is %q; it must be three upper-case letters", o.Currency))
	case strings.ContainsRune(o.RecipientID, 0):
		return invalid("recipientId", "has a NUL in it, which is no text to a database")
	case o.RecipientID == "":
		return invalid("recipientId", "is empty")
	case len(o.RecipientID) > MaxRecipientLength:
		return invalid("recipientId", fmt.Sprintf("has %d bytes; the most is %d", len(o.RecipientID), MaxRecipientLength))
	}
	return nil
}

func isCurrency(s string) bool {
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// CheckJSON refuses a body that does not say it is JSON.
func CheckJSON(contentType string) *Problem {
	if media, _, err := mime.ParseMediaType(contentType); err == nil && media == "application/json" {
		return nil
	}
	p := NewProblem(http.StatusUnsupportedMediaType, "content-type-unsupported",
		fmt.Sprintf("the Content-Type is %q; send application/json", contentType))
	p.Field = "Content-Type"
	return p
}

// badJSON turns a decoding error into a problem that names the member.
func badJSON(err error) *Problem {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		field := memberOf(semantic.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return invalid(field, "is not a member of an order: amount, currency and recipientId are")
		case field == "":
			return invalid("", "the body must be one JSON object")
		}
		return invalid(field, wantType(field))
	case errors.As(err, &syntactic):
		return invalid(memberOf(syntactic.JSONPointer), "the body is not JSON as it should be: "+syntactic.Error())
	}
	return invalid("", "the body is not JSON as it should be: "+err.Error())
}

func wantType(field string) string {
	if field == "amount" {
		return "must be an integer in minor units, 2500 for 25.00, as a JSON number without a fraction"
	}
	return "must be a JSON string"
}

// memberOf returns the first name of a JSON pointer.
func memberOf(p jsontext.Pointer) string {
	for name := range p.Tokens() {
		return name
	}
	return ""
}

func invalid(field, detail string) *Problem {
	if field != "" {
		detail = field + " " + detail
	}
	p := NewProblem(http.StatusBadRequest, "payment-invalid", detail)
	p.Field = field
	return p
}
