package service

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// orderID is what a client may call its order.
var orderID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,64}$`)

// putOrder stores an order under the client's own name for it. The same body
// again changes nothing and gets the same answer, so it needs no key.
func (s *Service) putOrder(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	body, problem := readOrder(w, r, id)
	if problem != nil {
		problem.Write(w)
		return
	}
	version, err := s.storeOrder(r.Context(), id, body)
	if err != nil {
		s.failed(w, r, err)
		return
	}
	status := http.StatusOK
	if version == 1 {
		status = http.StatusCreated
		w.Header().Set("Location", "/orders/"+id)
	}
	writeOrder(w, status, body)
}

func writeOrder(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}

func readOrder(w http.ResponseWriter, r *http.Request, id string) ([]byte, *payments.Problem) {
	if !orderID.MatchString(id) {
		p := payments.NewProblem(http.StatusBadRequest, "order-invalid", "the order's id must be 1 to 64 letters, digits or any of . _ ~ -")
		p.Field = "id"
		return nil, p
	}
	if p := payments.CheckJSON(r.Header.Get("Content-Type")); p != nil {
		return nil, p
	}
	body, problem := payments.ReadBody(w, r)
	if problem != nil {
		return nil, problem
	}
	order := jsontext.Value(body)
	if !order.IsValid() || order.Kind() != '{' {
		return nil, payments.NewProblem(http.StatusBadRequest, "order-invalid", "the body must be one JSON object, with each name once")
	}
	return body, nil
}

const (
	insertOrder = `INSERT INTO demo_orders (demo, id, version, body) VALUES (?, ?, 1, ?)`
	selectOrder = `SELECT body FROM demo_orders WHERE demo = ? AND id = ?`
	deleteOrder = `DELETE FROM demo_orders WHERE demo = ? AND id = ?`
)

// storeOrder returns the order's version: 1 as it was made, more once it has
// been changed.
func (s *Service) storeOrder(ctx context.Context, id string, body []byte) (version int64, err error) {
	err = s.db.QueryRowContext(ctx, s.sql.putOrder, s.demo, id, body).Scan(&version)
	return version, err
}

// getOrder shows a stored order.
func (s *Service) getOrder(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !orderID.MatchString(id) {
		noOrder(id).Write(w)
		return
	}
	var body []byte
	err := s.read.QueryRowContext(r.Context(), s.sql.order, s.demo, id).Scan(&body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		noOrder(id).Write(w)
	case err != nil:
		s.failed(w, r, err)
	default:
		writeOrder(w, http.StatusOK, body)
	}
}

// deleteOrder removes an order. A repeat finds none: the effect is the same,
// the answer says what was found.
func (s *Service) deleteOrder(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !orderID.MatchString(id) {
		noOrder(id).Write(w)
		return
	}
	res, err := s.db.ExecContext(r.Context(), s.sql.deleteOrder, s.demo, id)
	if err != nil {
		s.failed(w, r, err)
		return
	}
	if n, err := res.RowsAffected(); err == nil && n == 0 {
		noOrder(id).Write(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func noOrder(id string) *payments.Problem {
	return payments.NewProblem(http.StatusNotFound, "not-found", "there is no order "+id)
}
