CREATE TABLE orders (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	item        text NOT NULL UNIQUE,
	order_parts bigint REFERENCES orders
);
