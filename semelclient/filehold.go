package semelclient

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"
)

// holders are the holds of one FileStore. What other processes see of them is in
// the folder, and changes only alone.
type holders struct {
	turn chan struct{} // holds a value while somebody of this process is at the gate

	mu    sync.Mutex
	held  map[string]string // names, with their tokens
	left  map[string]bool   // names that are let go, with their link not yet removed
	count int64
}

func newHolders() holders {
	return holders{turn: make(chan struct{}, 1), held: make(map[string]string), left: make(map[string]bool)}
}

// alone runs f while no other holder changes, of this process or another. It
// waits for that until ctx ends.
func (s *FileStore) alone(ctx context.Context, f func() error) error {
	select {
	case s.holders.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.removeLinks()
	err := f()
	s.removeLinks()
	return errors.Join(err, s.leave())
}

// enter locks the gate. Who has the turn gives it back if that fails.
func (s *FileStore) enter(ctx context.Context) error {
	free, err := tryLock(s.gate)
	if free {
		return nil
	}
	if err != nil {
		<-s.holders.turn
		return err
	}
	locked := make(chan error, 1)
	go func() { locked <- waitLock(s.gate) }()
	select {
	case err := <-locked:
		if err != nil {
			<-s.holders.turn
		}
		return err
	case <-ctx.Done():
		// The system cannot be told to stop waiting. The turn is given back when
		// it has.
		go func() {
			if <-locked == nil {
				s.leave() //nolint:errcheck // there is nobody to tell.
				return
			}
			<-s.holders.turn
		}()
		return ctx.Err()
	}
}

// leave unlocks the gate and gives the turn back.
func (s *FileStore) leave() error {
	err := unlock(s.gate)
	<-s.holders.turn
	return err
}

// hold makes this store the holder of an intent. It is called alone.
func (s *FileStore) hold(key string) (Hold, error) {
	name := fileName(key)
	if s.holds(name) {
		return Hold{}, ErrIntentHeld
	}
	link := s.path(name + holderEnding)
	owner, err := os.Readlink(link)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Hold{}, err
	case owner != s.owner && s.alive(owner):
		return Hold{}, ErrIntentHeld
	default:
		os.Remove(link)
	}
	if err := os.Symlink(s.owner, link); err != nil {
		return Hold{}, err
	}
	s.holders.mu.Lock()
	defer s.holders.mu.Unlock()
	s.holders.count++
	token := s.owner + "/" + strconv.FormatInt(s.holders.count, 10)
	s.holders.held[name] = token
	return Hold{Key: key, Token: token}, nil
}

func (s *FileStore) holds(name string) bool {
	s.holders.mu.Lock()
	defer s.holders.mu.Unlock()
	return s.holders.held[name] != ""
}

// has reports whether h is still the hold of its intent.
func (s *FileStore) has(h Hold) bool {
	s.holders.mu.Lock()
	defer s.holders.mu.Unlock()
	return s.holders.held[fileName(h.Key)] == h.Token
}

// letGo undoes hold. Other processes see it once somebody is alone.
func (s *FileStore) letGo(h Hold) {
	s.holders.mu.Lock()
	defer s.holders.mu.Unlock()
	if name := fileName(h.Key); s.holders.held[name] == h.Token {
		delete(s.holders.held, name)
		s.holders.left[name] = true
	}
}

// letGoOf undoes any hold of an intent that is gone.
func (s *FileStore) letGoOf(name string) {
	s.holders.mu.Lock()
	defer s.holders.mu.Unlock()
	delete(s.holders.held, name)
	s.holders.left[name] = true
}

// removeLinks shows to other processes what was let go. It is called alone.
func (s *FileStore) removeLinks() {
	s.holders.mu.Lock()
	defer s.holders.mu.Unlock()
	for name := range s.holders.left {
		if s.holders.held[name] == "" {
			os.Remove(s.path(name + holderEnding))
		}
		delete(s.holders.left, name)
	}
}

// alive reports whether the process behind an owner runs. It is called alone, so
// that two who ask do not take each other for the owner.
func (s *FileStore) alive(owner string) bool {
	f, err := os.OpenFile(s.path(owner+ownerEnding), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	free, err := tryLock(f)
	return err != nil || !free
}
