package semelclient

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
)

// holders are the holds of one FileStore. They stand in the folder, as links to
// their tokens, and change only alone.
type holders struct {
	turn chan struct{} // holds a value while somebody of this process is at the gate

	mu    sync.Mutex
	left  map[string]string // tokens that are let go, with their names, while the link may still be there
	count int64
}

func newHolders() holders {
	return holders{turn: make(chan struct{}, 1), left: make(map[string]string)}
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
	s.removeLinks() //nolint:errcheck // what cannot be removed is tried again.
	err := f()
	s.removeLinks() //nolint:errcheck // as before.
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

// hold makes this store the holder of an intent that is there. It is called
// alone.
func (s *FileStore) hold(key string) (Hold, error) {
	token, err := s.holder(fileName(key))
	if err != nil {
		return Hold{}, err
	}
	owner, _, _ := strings.Cut(token, "/")
	if owner == s.owner || owner != "" && s.alive(owner) {
		return Hold{}, ErrIntentHeld
	}
	return s.take(key)
}

// take makes this store the holder of an intent, whoever was. It is called alone.
func (s *FileStore) take(key string) (Hold, error) {
	name := fileName(key)
	if err := s.removeFile(name + holderEnding); err != nil {
		return Hold{}, err
	}
	s.holders.mu.Lock()
	s.holders.count++
	token := s.owner + "/" + strconv.FormatInt(s.holders.count, 10)
	s.holders.mu.Unlock()
	if err := os.Symlink(token, s.path(name+holderEnding)); err != nil {
		return Hold{}, err
	}
	return Hold{Key: key, Token: token}, nil
}

// holder returns the token of the hold of an intent, or "". It is called alone.
func (s *FileStore) holder(name string) (string, error) {
	token, err := os.Readlink(s.path(name + holderEnding))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return token, err
}

// has returns nil if h is still the hold of its intent: another process may have
// forgotten that, and made another of the same key. It is called alone.
func (s *FileStore) has(h Hold) error {
	token, err := s.holder(fileName(h.Key))
	if err != nil {
		return err
	}
	s.holders.mu.Lock()
	defer s.holders.mu.Unlock()
	if _, left := s.holders.left[h.Token]; left || token == "" || token != h.Token {
		return ErrIntentHeld
	}
	return nil
}

// letGo undoes hold. Other processes see it once somebody is alone.
func (s *FileStore) letGo(h Hold) {
	s.holders.mu.Lock()
	defer s.holders.mu.Unlock()
	s.holders.left[h.Token] = fileName(h.Key)
}

// removeLinks shows to other processes what was let go. It is called alone.
func (s *FileStore) removeLinks() error {
	s.holders.mu.Lock()
	defer s.holders.mu.Unlock()
	var faults []error
	for token, name := range s.holders.left {
		now, err := s.holder(name)
		if err == nil && now == token {
			err = s.removeFile(name + holderEnding)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		delete(s.holders.left, token)
	}
	return errors.Join(faults...)
}

// removeFile removes a file of the folder, if it is there.
func (s *FileStore) removeFile(name string) error {
	err := os.Remove(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
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
