package shop

import (
	"fmt"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

func TestAccountIsJudgedByItsCharges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		account              payments.Account
		what, verdict, words string
	}{
		{payments.Account{}, "taken for 0 orders", "none", "No order so far."},
		{payments.Account{Orders: 1}, "taken for 1 order of $25.00", "under", "1 order not charged so far."},
		{payments.Account{Orders: 2, Charges: 2, Charged: 2, Taken: 5000}, "taken for 2 orders of $25.00 each", "right", "Each order charged once."},
		// One order charged twice and one not at all: the sums alone look right.
		{
			payments.Account{Orders: 2, Charges: 2, Charged: 1, Taken: 5000},
			"taken for 2 orders of $25.00 each", "over",
			"1 charge too many, 1 order not charged so far.",
		},
		{payments.Account{Orders: 1, Charges: 3, Charged: 1, Taken: 7500}, "taken for 1 order of $25.00", "over", "2 charges too many."},
		{payments.Account{Orders: 2, Charges: 2, Charged: 2, Taken: 5001}, "taken for 2 orders", "right", "Each order charged once."},
	} {
		v := accountView{Account: c.account}
		assert.Equal(t, v.For(), c.what)
		assert.Equal(t, v.Verdict(), c.verdict)
		assert.Equal(t, v.Judgement(), c.words)
	}
}

func TestLogLinesAreWrittenPlainly(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"time":"t","level":"INFO","msg":"paid","request":"4","attempt":2,"id":"a b"}`: "paid attempt=2 id=a b",
		`{"process":"bank","msg":"charge","key":"","n":0}`:                              "bank: charge n=0",
		`{"level":"WARN","msg":"not paid"}`:                                             "not paid level=WARN",
		`{"msg":"m","quoted":"a\"b","group":{"x":[1,2]},"big":12345678901234567890}`:    `m quoted="a\"b" group={"x":[1,2]} big=12345678901234567890`,
		`not json`:     "not json",
		`{"msg":"cut`:  `{"msg":"cut`,
		`[1]`:          "[1]",
		`{"msg":"m",}`: `{"msg":"m",}`,
	} {
		assert.Equal(t, plain(line), want)
	}
}

func TestTheStylesheetsLanesStandWhereTheDrawingsDo(t *testing.T) {
	t.Parallel()
	css, err := assets.ReadFile("assets/diagram.css")
	assert.NoError(t, err)
	for _, l := range (drawing{}).Lanes() {
		assert.Contains(t, string(css), fmt.Sprintf("var(--lane) %d%% 0 / 1.5px 100%%", l.X()), "the lane of the %s", l)
	}
}
