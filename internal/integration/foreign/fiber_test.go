//go:build !race

package foreign

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/google/uuid"

	"github.com/semel-dev/semel/internal/assert"
)

// refusedBody is a payment of nothing, failingBody one that is charged and then
// fails.
const (
	goodBody    = `{"amount":2500,"currency":"USD"}`
	refusedBody = `{"amount":0,"currency":"USD"}`
	failingBody = `{"amount":500,"currency":"USD"}`
)

// workTime is how long a charge takes, so that requests that come at once meet.
const workTime = 20 * time.Millisecond

// bank counts charges.
type bank struct{ charges atomic.Int64 }

// tenantHeader tells callers apart.
const tenantHeader = "X-Tenant"

// shop is how a payment service uses the middleware.
type shop struct {
	config []idempotency.Config
	// before is a handler before the middleware.
	before fiber.Handler
	// keyHeader and bareKeys are how it wants its keys.
	keyHeader string
	bareKeys  bool
	// fail is how its handler says that a payment failed.
	fail func(c fiber.Ctx, status int, says string) error
}

// asDocumented is the middleware without a setting, and a handler that returns
// its errors, as Fiber's own examples do.
func asDocumented() shop {
	return shop{keyHeader: "X-Idempotency-Key", bareKeys: true, fail: func(_ fiber.Ctx, status int, says string) error { return fiber.NewError(status, says) }}
}

// asGoodAsItGets has the draft's field, keys that are checked and refused with a
// 400, and a handler that writes its errors as replies, so that they are kept.
func asGoodAsItGets() shop {
	return shop{
		config: []idempotency.Config{{KeyHeader: "Idempotency-Key", KeyHeaderValidate: validKey}},
		fail: func(c fiber.Ctx, status int, says string) error {
			return c.Status(status).JSON(fiber.Map{"error": says})
		},
	}
}

// withKeysPerCaller is that with a handler before the middleware, which checks the
// key and puts the caller, the method and the path before it.
func withKeysPerCaller() shop {
	s := asGoodAsItGets()
	s.before = func(c fiber.Ctx) error {
		key := c.Get(s.config[0].KeyHeader)
		if key == "" {
			return c.Next()
		}
		if err := validKey(key); err != nil {
			return err
		}
		c.Request().Header.Set(s.config[0].KeyHeader, c.Get(tenantHeader)+" "+c.Method()+" "+c.Path()+" "+key)
		return c.Next()
	}
	s.config[0].KeyHeaderValidate = func(string) error { return nil } // it has been checked
	return s
}

// validKey allows what a structured field's string may hold between its quotes.
func validKey(key string) error {
	inner := strings.TrimSuffix(strings.TrimPrefix(key, `"`), `"`)
	beyond := func(r rune) bool { return r < ' ' || r > '~' || r == '"' }
	if len(key)-len(inner) != 2 || inner == "" || len(inner) > 255 || strings.ContainsFunc(inner, beyond) {
		return fiber.NewError(http.StatusBadRequest, "no idempotency key")
	}
	return nil
}

// serve serves the shop on loopback and returns its address.
func (s shop) serve(t *testing.T) string {
	t.Helper()
	var b bank
	app := fiber.New()
	app.Get("/ledger", func(c fiber.Ctx) error { return c.JSON(fiber.Map{"charges": b.charges.Load()}) })
	if s.before != nil {
		app.Use(s.before)
	}
	app.Use(idempotency.New(s.config...))
	app.Post("/payments", func(c fiber.Ctx) error { return s.pay(c, &b) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		assert.NoError(t, app.Shutdown())
		assert.NoError(t, <-served)
	})
	return "http://" + listener.Addr().String()
}

func (s shop) pay(c fiber.Ctx, b *bank) error {
	var order struct {
		Amount int `json:"amount"`
	}
	if err := c.Bind().JSON(&order); err != nil || order.Amount <= 0 {
		return s.fail(c, http.StatusBadRequest, "no amount")
	}
	b.charges.Add(1)
	<-time.After(workTime)
	if order.Amount == 500 {
		return s.fail(c, http.StatusInternalServerError, "charged, and then the disk was full")
	}
	id := uuid.NewString()
	c.Location("/payments/" + id)
	return c.Status(http.StatusCreated).JSON(fiber.Map{"id": id, "amount": order.Amount})
}
