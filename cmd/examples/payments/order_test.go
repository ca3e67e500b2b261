package payments_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

const jsonType = "application/json"

func TestAnOrderIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"plain":                `{"amount":2500,"currency":"USD","recipientId":"r_123"}`,
		"spaced and reordered": ` { "recipientId" : "r_123", "currency" : "USD", "amount" : 2500 } `,
		"escaped":              `{"amount":2500,"currency":"\u0055SD","recipientId":"r_\u0031\u0032\u0033"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := payments.ParseOrder(jsonType+"; charset=utf-8", []byte(body))
			if problem != nil {
				t.Fatalf("got problem %+v, want none", problem)
			}
			assert.Equal(t, got, payments.Order{Amount: 2500, Currency: "USD", RecipientID: "r_123"})
		})
	}
}

func TestABadOrderIsRefusedByTheNameOfItsField(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, field, detail string }{
		"no body":               {``, "", "not JSON"},
		"not JSON":              {`amount=2500`, "", "not JSON"},
		"cut off":               {`{"amount":2500,`, "", "not JSON"},
		"two values":            {`{"amount":1,"currency":"USD","recipientId":"r"}{}`, "", "not JSON"},
		"an array":              {`[1]`, "", "one JSON object"},
		"null":                  {`null`, "amount", "is missing"},
		"empty object":          {`{}`, "amount", "is missing"},
		"no currency":           {`{"amount":1,"recipientId":"r"}`, "currency", "is missing"},
		"no recipient":          {`{"amount":1,"currency":"USD"}`, "recipientId", "is missing"},
		"amount null":           {`{"amount":null,"currency":"USD","recipientId":"r"}`, "amount", "is missing"},
		"amount zero":           {`{"amount":0,"currency":"USD","recipientId":"r"}`, "amount", "from 1 to 99999999"},
		"amount negative":       {`{"amount":-1,"currency":"USD","recipientId":"r"}`, "amount", "from 1 to 99999999"},
		"amount too large":      {`{"amount":100000000,"currency":"USD","recipientId":"r"}`, "amount", "from 1 to 99999999"},
		"amount beyond int64":   {`{"amount":9223372036854775808,"currency":"USD","recipientId":"r"}`, "amount", "integer"},
		"amount a fraction":     {`{"amount":25.5,"currency":"USD","recipientId":"r"}`, "amount", "integer"},
		"amount with exponent":  {`{"amount":25e2,"currency":"USD","recipientId":"r"}`, "amount", "integer"},
		"amount a string":       {`{"amount":"2500","currency":"USD","recipientId":"r"}`, "amount", "integer"},
		"currency lower case":   {`{"amount":1,"currency":"usd","recipientId":"r"}`, "currency", "three upper-case letters"},
		"currency four letters": {`{"amount":1,"currency":"USDT","recipientId":"r"}`, "currency", "three upper-case letters"},
		"currency with digit":   {`{"amount":1,"currency":"U1D","recipientId":"r"}`, "currency", "three upper-case letters"},
		"currency a number":     {`{"amount":1,"currency":840,"recipientId":"r"}`, "currency", "must be a JSON string"},
		"recipient empty":       {`{"amount":1,"currency":"USD","recipientId":""}`, "recipientId", "is empty"},
		"recipient with a NUL":  {`{"amount":1,"currency":"USD","recipientId":"r\u0000"}`, "recipientId", "has a NUL in it"},
		"recipient too long":    {`{"amount":1,"currency":"USD","recipientId":"` + strings.Repeat("r", 256) + `"}`, "recipientId", "has 256 bytes"},
		"unknown member":        {`{"amount":1,"currency":"USD","recipientId":"r","tip":5}`, "tip", "not a member"},
		"wrong case":            {`{"Amount":1,"currency":"USD","recipientId":"r"}`, "Amount", "not a member"},
		"doubled member":        {`{"amount":1,"amount":2,"currency":"USD","recipientId":"r"}`, "amount", "duplicate"},
		"bad UTF-8":             {"{\"amount\":1,\"currency\":\"USD\",\"recipientId\":\"\xff\"}", "recipientId", "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problem := payments.ParseOrder(jsonType, []byte(c.body))
			if problem == nil {
				t.Fatal("got no problem, want one")
			}
			assert.Equal(t, problem.Status, http.StatusBadRequest)
			assert.Equal(t, problem.Code, "payment-invalid")
			assert.Equal(t, problem.Field, c.field)
			assert.Contains(t, problem.Detail, c.detail)
			assert.Contains(t, problem.Type, "#payment-invalid")
		})
	}
}

func TestABodyThatDoesNotSayItIsJSONIsRefused(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", ";"} {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			_, problem := payments.ParseOrder(contentType, []byte(`{"amount":1,"currency":"USD","recipientId":"r"}`))
			if problem == nil {
				t.Fatal("got no problem, want one")
			}
			assert.Equal(t, problem.Status, http.StatusUnsupportedMediaType)
			assert.Equal(t, problem.Field, "Content-Type")
		})
	}
}

func TestEveryProblemHasATitleAndASectionInTheDocument(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../docs/demo.md")
	assert.NoError(t, err)
	_, problems, _ := strings.Cut(string(document), "\n## Problems\n")
	sections := strings.Count(problems, "\n### ")
	codes := payments.ProblemCodes()
	assert.Equal(t, sections, len(codes), "sections")
	for _, code := range codes {
		assert.True(t, payments.NewProblem(http.StatusBadRequest, code, "").Title != "", "title of %s", code)
		assert.Contains(t, string(document), "\n### "+code+"\n")
	}
}

func TestTheDocumentNamesEveryFault(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../docs/demo.md")
	assert.NoError(t, err)
	for _, fault := range payments.Faults() {
		assert.Contains(t, string(document), "| `"+string(fault)+"` |")
	}
}
