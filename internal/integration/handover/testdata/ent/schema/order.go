// Package schema says what the orders of the examples look like to ent.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// Order is an order, which others may be parts of.
type Order struct{ ent.Schema }

// Fields returns the columns.
func (Order) Fields() []ent.Field {
	return []ent.Field{field.String("item").Unique()}
}

// Edges returns the relations. One between two rows takes ent two statements,
// for which it begins a transaction of its own.
func (Order) Edges() []ent.Edge {
	return []ent.Edge{edge.To("parts", Order.Type).From("whole").Unique()}
}
