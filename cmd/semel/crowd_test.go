package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
	"github.com/semel-dev/semel/internal/assert"
)

func TestACrowdAndAReaderWhoPaysMeanwhileAreNotInEachOthersWay(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	a := d.send(t, http.MethodPost, "/demo/crowd", `{"seed":7,"shoppers":20,"trouble":20}`)
	assert.Equal(t, a.Status, http.StatusAccepted, "%s", a.Body)
	d.payUntil(t, "k1")
	var got crowd.Report
	assert.Eventually(t, "the run has ended", func() bool {
		a = d.send(t, http.MethodGet, "/demo/crowd", "")
		got = crowd.Report{}
		assert.NoError(t, json.Unmarshal([]byte(a.Body), &got), "%s", a.Body)
		return !got.Running
	})
	assert.True(t, *got.Holds, "it does not hold: %s", a.Body)
	for _, p := range got.Doors {
		assert.Equal(t, p.Ledger.Orders, int64(20), "orders at %s", p.Door)
	}
	assert.Equal(t, d.ledger(t), payments.Ledger{payments.Keyed: once, payments.Keyless: {}, payments.Naive: {}})
}
