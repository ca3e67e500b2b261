-- +goose Down

-- Notes for operators. Drops every key and every settlement: a request that
-- was done before would run again. Stop all services first.

DROP TABLE semel_audit;

DROP TABLE semel_sweep;

DROP TABLE semel_records;
