package semelclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/semel-dev/semel/semelclient"
)

func Example() {
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
	}))
	defer bank.Close()
	client, err := semelclient.New(new(semelclient.MemoryStore), semelclient.Config{AskFunc: lookUp})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	intent, err := client.Intend(ctx, http.MethodPost, bank.URL+"/payments", nil, []byte(`{"amount":1900}`))
	if err != nil {
		fmt.Println("nothing was sent:", err)
		return
	}
	result := client.Do(ctx, intent)
	fmt.Println(result.Outcome, result.Status)
	// Output: applied 201
}

// lookUp finds out what became of an intent without sending it again.
func lookUp(ctx context.Context, in semelclient.Intent) (semelclient.Outcome, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, in.URL+"?key="+url.QueryEscape(in.Key), nil)
	if err != nil {
		return semelclient.Unknown, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return semelclient.Unknown, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return semelclient.Applied, nil
	case http.StatusNotFound:
		return semelclient.NotApplied, nil
	}
	return semelclient.Unknown, nil
}

func ExampleClient_RoundTripper() {
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Println("it has a key:", r.Header.Get("Idempotency-Key") != "")
	}))
	defer bank.Close()
	client, err := semelclient.New(new(semelclient.MemoryStore), semelclient.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	shop := http.Client{Transport: client.RoundTripper()}
	resp, err := shop.Post(bank.URL+"/payments", "application/json", strings.NewReader(`{"amount":1900}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output:
	// it has a key: true
	// 201
}
