-- name: InsertOrder :one
INSERT INTO orders (item) VALUES ($1) RETURNING id;
