package shop

import "sync"

// shared makes things that several ask for at the same time once for all of
// them. Nobody gets what was begun before they asked: it may be old. The zero
// value is ready.
type shared struct {
	mu     sync.Mutex
	queues map[string]*queue
}

// queue is who waits for one of the things.
type queue struct {
	busy bool
	// next is made when the present making has ended; nil while nobody waits.
	next *making
}

// making is one thing being made.
type making struct {
	build func() ([]byte, error) // of who asked for it first
	done  chan struct{}
	body  []byte
	err   error
}

// get returns what build makes of name.
func (s *shared) get(name string, build func() ([]byte, error)) ([]byte, error) {
	s.mu.Lock()
	if s.queues == nil {
		s.queues = map[string]*queue{}
	}
	q := s.queues[name]
	if q == nil {
		q = &queue{}
		s.queues[name] = q
	}
	if q.next == nil {
		q.next = &making{build: build, done: make(chan struct{})}
	}
	m := q.next
	if !q.busy {
		q.busy = true
		go s.work(name, q)
	}
	s.mu.Unlock()
	<-m.done
	return m.body, m.err
}

// work makes what is waited for, until nobody waits.
func (s *shared) work(name string, q *queue) {
	for {
		s.mu.Lock()
		m := q.next
		q.next = nil
		if m == nil {
			delete(s.queues, name)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		m.body, m.err = m.build()
		close(m.done)
	}
}
