package idempotencykey_test

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/semel-dev/semel/idempotencykey"
)

func ExampleParse() {
	for _, header := range []http.Header{
		{"Idempotency-Key": {`"8e03978e"`}},
		{"Idempotency-Key": {"8e03978e"}},
		{"Idempotency-Key": {"k1, k2"}},
		{},
	} {
		key, err := idempotencykey.Parse(header["Idempotency-Key"], false)
		switch {
		case errors.Is(err, idempotencykey.ErrMissing):
			fmt.Println("no key")
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println(key)
		}
	}
	// Output:
	// 8e03978e
	// 8e03978e
	// semel: the key has a comma at character 3: send one key, or put it in double quotes
	// no key
}
