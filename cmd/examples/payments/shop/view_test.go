package shop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
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

func TestTheQuestionNamesWhatIsAsked(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct{ orders, charged int }{
		"Why was it not charged?":                 {1, 0},
		"Why was it charged once?":                {1, 1},
		"Why was it charged 3 times?":             {1, 3},
		"Why was the latest order charged twice?": {2, 2},
		"Why was the latest order not charged?":   {2, 0},
	} {
		v := accountView{Account: payments.Account{Orders: int64(c.orders)}, Story: storyView{Charged: c.charged}}
		assert.Equal(t, v.Question(), want)
	}
}

func TestDoubleChargesOfABankThatIgnoresItsKeysAreSaidToBeTheBanks(t *testing.T) {
	t.Parallel()
	twice := payments.Account{Orders: 20, Payments: 20, Charges: 23, Charged: 20, Taken: 57500}
	view := func(change func(*crowdView)) crowdView {
		v := crowdView{Report: crowd.Report{
			Settings: crowd.Settings{Shoppers: 20}, BankForgets: true,
			Doors: []crowd.Part{{Door: payments.Keyed, Ledger: &twice}, {Door: payments.Keyless, Ledger: &twice}},
		}}
		change(&v)
		return v
	}
	v := view(func(*crowdView) {})
	assert.Contains(t, v.Blame(), "This bank ignores the keys")
	assert.Contains(t, v.Blame(), "Semel stored each order once")
	assert.Contains(t, v.Blame(), "the 3 charges too many are the bank’s own")
	for _, row := range v.Rows() {
		assert.Equal(t, strings.HasSuffix(row.Judgement(), ", by a bank that ignores its keys"), row.Door == payments.Keyed, "%s: %s", row.Door, row.Judgement())
	}
	once := payments.Account{Orders: 20, Payments: 20, Charges: 20, Charged: 20, Taken: 50000}
	for name, change := range map[string]func(*crowdView){
		"a bank that looks at its keys": func(v *crowdView) { v.BankForgets = false },
		"a new key for each send":       func(v *crowdView) { v.NewKeys = true },
		"nothing charged twice":         func(v *crowdView) { v.Doors[0].Ledger = &once },
	} {
		assert.Equal(t, view(change).Blame(), "", name)
	}
}
