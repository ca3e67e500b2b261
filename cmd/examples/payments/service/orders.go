package service

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// maxOrderBody is the longest order that is stored, in bytes.
const maxOrderBody = 64 << 10

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
	refuse := func(status int, code, field, detail string) ([]byte, *payments.Problem) {
		p := payments.NewProblem(status, code, detail)
		p.Field = field
		return nil, p
	}
	if !orderID.MatchString(id) {
		return refuse(http.StatusBadRequest, "order-invalid", "id", "the order's id must be 1 to 64 letters, digits or any of . _ ~ -")
	}
	if p := payments.CheckJSON(r.Header.Get("Content-Type")); p != nil {
		return nil, p
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxOrderBody))
	if errors.As(err, new(*http.MaxBytesError)) {
		return refuse(http.StatusRequestEntityTooLarge, "body-too-large", "", fmt.Sprintf("the body is over %d bytes", maxOrderBody))
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "order-invalid", "", "the body did not arrive whole")
	}
	order := jsontext.Value(body)
	if !order.IsValid() || order.Kind() != '{' {
		return refuse(http.StatusBadRequest, "order-invalid", "", "the body must be one JSON object, with each name once")
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
