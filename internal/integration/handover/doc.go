// Package handover shows how a handler writes with a library of its own choice
// in the transaction that Semel commits with the reply, or the other way round,
// and tries that on real servers: database/sql, pgx, sqlc, GORM, bun and ent.
// docs/stores.md quotes it. It is a module of its own, so that what the
// libraries need is in nobody else's list. It is left out of the race run: to
// build it with the race detector takes longer than all that it tries, one
// request at a time.
package handover

//go:generate go run entgo.io/ent/cmd/ent@v0.14.5 generate ./testdata/ent/schema
//go:generate env CGO_ENABLED=0 go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate --file testdata/sqlc/sqlc.yaml
