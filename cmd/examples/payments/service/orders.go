package service

import (
	"bytes"
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

// storeOrder returns the order's version: 1 as it was made, more once it has
// been changed.
func (s *Service) storeOrder(ctx context.Context, id string, body []byte) (int64, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // after the commit there is nothing left to undo.
	var (
		version int64
		known   []byte
	)
	err = tx.QueryRowContext(ctx, `SELECT version, body FROM orders WHERE id = ?`, id).Scan(&version, &known)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	if version > 0 && bytes.Equal(known, body) {
		return version, nil
	}
	version++
	_, err = tx.ExecContext(ctx, `INSERT INTO orders (id, version, body) VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET version = excluded.version, body = excluded.body`, id, version, body)
	if err != nil {
		return 0, err
	}
	return version, tx.Commit()
}

// getOrder shows a stored order.
func (s *Service) getOrder(w http.ResponseWriter, r *http.Request) {
	var body []byte
	err := s.read.QueryRowContext(r.Context(), `SELECT body FROM orders WHERE id = ?`, r.PathValue("id")).Scan(&body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		noOrder(r).Write(w)
	case err != nil:
		s.failed(w, r, err)
	default:
		writeOrder(w, http.StatusOK, body)
	}
}

// deleteOrder removes an order. A repeat finds none: the effect is the same,
// the answer says what was found.
func (s *Service) deleteOrder(w http.ResponseWriter, r *http.Request) {
	res, err := s.db.ExecContext(r.Context(), `DELETE FROM orders WHERE id = ?`, r.PathValue("id"))
	if err != nil {
		s.failed(w, r, err)
		return
	}
	if n, err := res.RowsAffected(); err == nil && n == 0 {
		noOrder(r).Write(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func noOrder(r *http.Request) *payments.Problem {
	return payments.NewProblem(http.StatusNotFound, "not-found", "there is no order "+r.PathValue("id"))
}
