// Package migrate brings a database to the schema that this version of Semel
// needs. It applies every migration that is missing, in order, all of them or
// none where the database can undo them, and several processes may do it at
// once.
//
// Migrations are pairs of files in goose format, 0001_init.up.sql and
// 0001_init.down.sql, with notes for operators at the top. A file is never
// edited once it is released. What was applied is written to the table
// semel_migrations.
package migrate
