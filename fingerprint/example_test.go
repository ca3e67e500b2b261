package fingerprint_test

import (
	"fmt"

	"github.com/semel-dev/semel/fingerprint"
)

// A deploy adds a header to what makes a request; records saved before it are
// still compared by the old rules.
func ExampleSet() {
	before := fingerprint.Config{}
	now := fingerprint.Config{Headers: []string{"X-Account-Id"}}

	old, err := fingerprint.New(before)
	if err != nil {
		fmt.Println(err)
		return
	}
	saved := old.Of(fingerprint.Request{
		Method: "POST",
		Target: "/payments",
		Header: map[string][]string{"Content-Type": {"application/json"}},
		Body:   []byte(`{"amount":2500,"currency":"USD"}`),
	})

	set, err := fingerprint.NewSet(now, before)
	if err != nil {
		fmt.Println(err)
		return
	}
	repeat := fingerprint.Request{
		Method: "POST",
		Target: "/payments",
		Header: map[string][]string{"Content-Type": {"application/json"}, "X-Account-Id": {"a7"}},
		Body:   []byte(`{ "currency": "USD", "amount": 2500 }`),
	}
	again, loaded := set.Refingerprint(repeat, saved.Policy)
	fmt.Println("under the policy in force:", set.Of(repeat).Same(saved))
	fmt.Println("under the record's policy:", loaded && again.Same(saved))
	// Output:
	// under the policy in force: false
	// under the record's policy: true
}
