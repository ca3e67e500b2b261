package semel

import (
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/binary"

	"github.com/google/uuid"
)

// OperationID names one operation for good: the same service, scope, key and
// generation give the same id, with or without the record (R6). It is what
// goes to a bank as *its* idempotency key.
type OperationID uuid.UUID

// NewOperationID derives the id: the first 16 bytes of a SHA-256 over the
// length-prefixed parts, marked as UUIDv8 (RFC 9562 section 5.8). No secret
// goes in, since a lost secret would be a second charge.
func NewOperationID(service, scope, key string, generation int64) OperationID {
	var space [256]byte // enough for most, so that nothing is allocated
	b := space[:0]
	for _, part := range [...]string{"semel/operation", service, scope, key} {
		b = appendFramed(b, part)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(generation))
	sum := sha256.Sum256(b)
	id := OperationID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// appendFramed appends part after its length, so that no two lists of parts
// give the same bytes.
func appendFramed[T string | []byte](b []byte, part T) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
	return append(b, part...)
}

// String returns the 36-character form.
func (id OperationID) String() string { return uuid.UUID(id).String() }

// IsZero reports whether the id is unset.
func (id OperationID) IsZero() bool { return id == OperationID{} }

var (
	_ encoding.TextMarshaler   = OperationID{}
	_ encoding.TextUnmarshaler = (*OperationID)(nil)
	_ driver.Valuer            = OperationID{}
	_ sql.Scanner              = (*OperationID)(nil)
)

// MarshalText returns the form that String returns, so that JSON holds it.
func (id OperationID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText reads the form that String returns.
func (id *OperationID) UnmarshalText(text []byte) error {
	return (*uuid.UUID)(id).UnmarshalText(text)
}

// Value makes the id an argument of a statement, as the text that String
// returns.
func (id OperationID) Value() (driver.Value, error) { return id.String(), nil }

// Scan reads a column that holds the text, or the 16 bytes.
func (id *OperationID) Scan(column any) error { return (*uuid.UUID)(id).Scan(column) }
