package pgxstore

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// openRows tells the joint when its rows are closed.
type openRows struct {
	pgx.Rows

	done  func(error)
	ended bool
}

// Next prepares the next row, and closes the rows after the last.
func (r *openRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.end()
	return false
}

// Scan reads the row. An error closes the rows.
func (r *openRows) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...)
	if err != nil {
		r.Close()
	}
	return err
}

// Values returns the row's values. An error closes the rows.
func (r *openRows) Values() ([]any, error) {
	values, err := r.Rows.Values()
	if err != nil {
		r.Close()
	}
	return values, err
}

// Close closes the rows.
func (r *openRows) Close() {
	r.Rows.Close()
	r.end()
}

// Conn returns none: a connection could commit.
func (r *openRows) Conn() *pgx.Conn { return nil }

func (r *openRows) end() {
	if !r.ended {
		r.ended = true
		r.done(r.Err())
	}
}

// openRow tells the joint when it was read.
type openRow struct {
	row  pgx.Row
	done func(error)
}

// Scan reads the row, once.
func (r *openRow) Scan(dest ...any) error {
	err := r.row.Scan(dest...)
	if r.done != nil {
		r.done(err)
		r.done = nil
	}
	return err
}

// failedRows are the answer to a query that failed: pgx lets the error be left
// to them.
type failedRows struct{ err error }

var _ pgx.Rows = failedRows{}

// Close has nothing to close.
func (r failedRows) Close() {}

// Err returns the error.
func (r failedRows) Err() error { return r.err }

// CommandTag returns none.
func (r failedRows) CommandTag() pgconn.CommandTag { return pgconn.CommandTag{} }

// FieldDescriptions returns none.
func (r failedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }

// Next finds no row.
func (r failedRows) Next() bool { return false }

// Scan returns the error.
func (r failedRows) Scan(...any) error { return r.err }

// Values returns the error.
func (r failedRows) Values() ([]any, error) { return nil, r.err }

// RawValues returns none.
func (r failedRows) RawValues() [][]byte { return nil }

// Conn returns none.
func (r failedRows) Conn() *pgx.Conn { return nil }

// TypeMap returns none.
func (r failedRows) TypeMap() *pgtype.Map { return nil }

// openBatch tells the joint when its results are closed.
type openBatch struct {
	pgx.BatchResults

	done func(error)
}

// Query reads the rows of the next query.
func (b *openBatch) Query() (pgx.Rows, error) {
	rows, err := b.BatchResults.Query()
	return batchRows{rows}, err
}

// Close reads what was not read.
func (b *openBatch) Close() error {
	err := b.BatchResults.Close()
	if b.done != nil {
		b.done(err)
		b.done = nil
	}
	return err
}

// batchRows are those of one query of a batch.
type batchRows struct{ pgx.Rows }

// Conn returns none: a connection could commit.
func (batchRows) Conn() *pgx.Conn { return nil }

// failedRow is the answer to a query that was not sent.
type failedRow struct{ err error }

// Scan returns the error.
func (r failedRow) Scan(...any) error { return r.err }

// failedBatch is the answer to a batch that was not sent.
type failedBatch struct{ err error }

var _ pgx.BatchResults = failedBatch{}

// Exec returns the error.
func (b failedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, b.err }

// Query returns the error, and rows that do.
func (b failedBatch) Query() (pgx.Rows, error) { return failedRows(b), b.err }

// QueryRow returns the error with its row.
func (b failedBatch) QueryRow() pgx.Row { return failedRow(b) }

// Close returns the error.
func (b failedBatch) Close() error { return b.err }

// Tx returns none.
func (b failedBatch) Tx() pgx.Tx { return nil }
