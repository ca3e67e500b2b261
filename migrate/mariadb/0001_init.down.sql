-- +goose Down

-- Notes for operators. Drops every key and every settlement: a request that
-- was done before would run again. Stop all services first.

DROP TABLE IF EXISTS semel_audit;

DROP TABLE IF EXISTS semel_sweep;

DROP TABLE IF EXISTS semel_records;
