package memstore

import "github.com/semel-dev/semel"

// entry is a record in its place. Only done and released records have a queue.
type entry struct {
	record     semel.Record // without its reply's header
	header     []byte       // of the reply, as text: one allocation where a header is many
	queue      *fifo
	prev, next *entry
	heapIndex  int
}

// replySize is how many bytes the entry's reply takes.
func (e *entry) replySize() int64 {
	return int64(len(e.record.Reply.Body) + len(e.header))
}
