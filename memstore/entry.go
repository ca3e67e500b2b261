package memstore

import "github.com/semel-dev/semel"

// entry is a record in its place. Only done and released records have a queue.
type entry struct {
	record     semel.Record // without its reply's header
	header     []field
	queue      *fifo
	prev, next *entry
	heapIndex  int
}

// replySize is how many bytes the entry's reply takes.
func (e *entry) replySize() int64 {
	n := len(e.record.Reply.Body)
	for _, f := range e.header {
		n += len(f.name) + len(f.value)
	}
	return int64(n)
}

// field is one value of a saved header. A list of them is one allocation where
// a header is many.
type field struct{ name, value string }

// fieldsOf lists h, each name's values in order.
func fieldsOf(h semel.Header) []field {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	if n == 0 {
		return nil
	}
	fields := make([]field, 0, n)
	for name, values := range h {
		for _, value := range values {
			fields = append(fields, field{name, value})
		}
	}
	return fields
}

// headerOf is the header that fields lists.
func headerOf(fields []field) semel.Header {
	if len(fields) == 0 {
		return nil
	}
	h := make(semel.Header, len(fields))
	for _, f := range fields {
		h[f.name] = append(h[f.name], f.value)
	}
	return h
}
