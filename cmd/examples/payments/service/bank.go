package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

const (
	// bankWithin is how long the bank may take.
	bankWithin = 10 * time.Second
	// maxBankReply is the longest reply of the bank that is read, in bytes.
	maxBankReply = 64 << 10
)

// bank is the way to the bank.
type bank struct {
	url    string
	client *http.Client
	log    *slog.Logger
}

// newBank returns a way to the bank at address. Each charge travels on a
// connection of its own: on one used before, net/http sends it again by itself
// (R20), and then this service would not know how often it asked.
func newBank(address string, log *slog.Logger) bank {
	return bank{
		url:    "http://" + address + "/charges",
		client: &http.Client{Timeout: bankWithin, Transport: &http.Transport{DisableKeepAlives: true}},
		log:    log,
	}
}

// charge asks for the money once, under the attempt's charge id as the key. It
// returns the charge's id, or the problem to answer with.
func (b bank) charge(ctx context.Context, p attempt) (string, *payments.Problem) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewReader(payments.Marshal(p.order)))
	if err != nil {
		return "", b.failed(ctx, p, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(payments.HeaderKey, p.chargeID)
	req.Header.Set(payments.InternalAccount, string(p.account))
	req.Header.Set(payments.InternalOrder, p.noted)
	req.Header.Set(payments.InternalRequest, p.request)
	req.Header.Set(payments.InternalFault, string(p.fault))
	b.log.InfoContext(ctx, payments.LineAsksBank, "charge_key", p.chargeID, "amount", p.order.Amount)
	resp, err := b.client.Do(req)
	if err != nil {
		return "", b.failed(ctx, p, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBankReply))
	if err != nil {
		return "", b.failed(ctx, p, err)
	}
	b.log.InfoContext(ctx, payments.LineBankAnswered, "charge_key", p.chargeID, "status", resp.StatusCode)
	switch resp.StatusCode {
	case http.StatusCreated:
		var charge struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(body, &charge); err != nil {
			return "", b.failed(ctx, p, err)
		}
		return charge.ID, nil
	case http.StatusPaymentRequired:
		return "", payments.NewProblem(http.StatusPaymentRequired, "charge-declined", "the bank declined the charge; no money was taken")
	}
	return "", b.failed(ctx, p, fmt.Errorf("it answered %d", resp.StatusCode))
}

// failed is the answer when the bank did not say yes or no. Nobody knows then
// what it did, so the reply is not kept and the same key asks again.
func (b bank) failed(ctx context.Context, p attempt, err error) *payments.Problem {
	b.log.WarnContext(ctx, payments.LineBankFailed, "door", p.door, "charge_key", p.chargeID, "error", err)
	return payments.NewProblem(http.StatusBadGateway, "bank-error",
		"the bank gave no usable answer; send the same request again, with the same key")
}
