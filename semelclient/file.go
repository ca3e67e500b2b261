package semelclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/semel-dev/semel"
)

// FileStore keeps each intent in a file of its own, in a folder that any number of
// processes of one machine may share. A file is written beside its name, synced,
// and renamed, and the folder is synced: it is there whole or not at all.
//
// Who holds an intent stands in a link beside it, and that the holder is alive in
// a lock of its process, which the system takes away when the process ends, however
// that happens. So a hold needs no clock, and Recover need not wait for one. The
// folder must be on a local disk, and the system one that has flock.
type FileStore struct {
	folder string
	owner  string
	lock   *os.File // says that the owner is alive
	gate   *os.File // locked while holders change

	holders holders
}

var _ IntentStore = (*FileStore)(nil)

// The endings of names in the folder, and the name of the gate.
const (
	intentEnding = ".intent"
	holderEnding = ".held" // a link to the token of the hold: the owner, and a number
	ownerEnding  = ".owner"
	newEnding    = ".new" // behind the owner
	gateName     = "gate"
)

// OpenFileStore opens the folder, which it makes if it is not there. Close it when
// no call of it is running any more. The error matches ErrIntentStore.
func OpenFileStore(folder string) (*FileStore, error) {
	s := &FileStore{folder: folder, owner: uuid.NewString(), holders: newHolders()}
	if err := s.open(); err != nil {
		s.Close()
		return nil, storeFailed(err, "open its folder")
	}
	return s, nil
}

func (s *FileStore) open() error {
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	var err error
	if s.gate, err = os.OpenFile(s.path(gateName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	// Alone, since whoever sees the name and no lock sees a process that is gone.
	return s.alone(context.Background(), func() error {
		var err error
		if s.lock, err = os.OpenFile(s.path(s.owner+ownerEnding), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
			return err
		}
		return waitLock(s.lock)
	})
}

// Close lets go of every intent that this store holds.
func (s *FileStore) Close() error {
	os.Remove(s.path(s.owner + ownerEnding))
	var faults []error
	for _, f := range []*os.File{s.lock, s.gate} {
		if f != nil {
			faults = append(faults, f.Close())
		}
	}
	return errors.Join(faults...)
}

func (s *FileStore) path(name string) string { return filepath.Join(s.folder, name) }

// fileName returns the name of a key's files, without ending: the key, if it is a
// UUID in its usual form, else a digest of it.
func fileName(key string) string {
	if id, err := uuid.Parse(key); err == nil && id.String() == key {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Add implements IntentStore.
func (s *FileStore) Add(ctx context.Context, in Intent, _ time.Duration) (Hold, error) {
	if err := ctx.Err(); err != nil {
		return Hold{}, err
	}
	written, err := s.write(in, nil)
	if err != nil {
		return Hold{}, err
	}
	defer os.Remove(written)
	var h Hold
	err = s.alone(ctx, func() error {
		var err error
		h, err = s.add(written, in.Key)
		return err
	})
	if err == nil {
		err = s.syncFolder()
	}
	if err != nil && h != (Hold{}) {
		err = s.takeBack(h, err)
		h = Hold{}
	}
	return h, err
}

// add gives a file that is written the name of its intent. It leaves no intent if
// it fails. It is called alone.
func (s *FileStore) add(written, key string) (Hold, error) {
	file := fileName(key) + intentEnding
	switch _, err := os.Lstat(s.path(file)); {
	case err == nil:
		return Hold{}, ErrIntentKnown
	case !errors.Is(err, fs.ErrNotExist):
		return Hold{}, err
	}
	// The hold comes first: one that a Forget was killed before it could remove is
	// of another intent, and must not be taken for a hold of this one.
	h, err := s.take(key)
	if err != nil {
		return Hold{}, err
	}
	if err := os.Link(written, s.path(file)); err != nil {
		s.letGo(h)
		return Hold{}, err
	}
	return h, nil
}

// takeBack removes what an Add stored that failed, and nobody else's.
func (s *FileStore) takeBack(h Hold, why error) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	err := s.alone(ctx, func() error {
		err := s.has(h)
		if errors.Is(err, ErrIntentHeld) {
			return nil // it was forgotten
		}
		if err == nil {
			err = s.remove(fileName(h.Key))
		}
		return err
	})
	if err == nil {
		err = s.syncFolder()
	}
	if err != nil {
		return mayBeStored(h.Key, errors.Join(why, err))
	}
	return why
}

// Hold implements IntentStore. A hold lasts until it is let go, or the process
// ends; d does not matter.
func (s *FileStore) Hold(ctx context.Context, key string, _ time.Duration) (Entry, error) {
	var entry Entry
	err := s.alone(ctx, func() error {
		var err error
		entry, err = s.read(fileName(key) + intentEnding)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return ErrIntentMissing
		case err == nil && entry.Intent.Key != key:
			return semel.NewError(CodeIntentDamaged, nil, "the file of %s is of another key", key)
		case err != nil || entry.Settlement != nil:
			return err
		}
		entry.Hold, err = s.hold(key)
		return err
	})
	if err == nil && entry.Settlement != nil {
		err = s.syncFolder() // whoever settled it may not have come so far
	}
	return entry, err
}

// Settle implements IntentStore.
func (s *FileStore) Settle(ctx context.Context, h Hold, settlement Settlement) error {
	file := fileName(h.Key) + intentEnding
	entry, err := s.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrIntentHeld // it was forgotten
	}
	if err != nil {
		return err
	}
	written, err := s.write(entry.Intent, &settlement)
	if err != nil {
		return err
	}
	defer os.Remove(written)
	err = s.alone(ctx, func() error {
		if err := s.has(h); err != nil {
			return err
		}
		if err := os.Rename(written, s.path(file)); err != nil {
			return err
		}
		s.letGo(h)
		return nil
	})
	if err != nil {
		return err
	}
	return s.syncFolder()
}

// Release implements IntentStore. If it fails, this store has let go, and other
// processes see that when it is at the folder next.
func (s *FileStore) Release(ctx context.Context, h Hold) error {
	s.letGo(h)
	return s.alone(ctx, s.removeLinks)
}

// Forget implements IntentStore.
func (s *FileStore) Forget(ctx context.Context, key string) error {
	if err := s.alone(ctx, func() error { return s.remove(fileName(key)) }); err != nil {
		return err
	}
	return s.syncFolder()
}

// remove removes an intent, and its hold after it: as long as it is there, nobody
// else must hold it. It is called alone.
func (s *FileStore) remove(name string) error {
	if err := s.removeFile(name + intentEnding); err != nil {
		return err
	}
	return s.removeFile(name + holderEnding)
}

// Keys implements IntentStore. On its way it removes what processes that are gone
// left behind.
func (s *FileStore) Keys(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := os.ReadDir(s.folder)
		if err != nil {
			yield("", err)
			return
		}
		for _, e := range entries {
			if ctx.Err() != nil {
				return
			}
			name, isIntent := strings.CutSuffix(e.Name(), intentEnding)
			if !isIntent {
				s.tidy(ctx, e.Name())
				continue
			}
			if key, err := s.keyOf(name); key != "" || err != nil {
				if !yield(key, err) {
					return
				}
			}
		}
	}
}

// keyOf returns the key of an intent, or "" if it is not there any more.
func (s *FileStore) keyOf(name string) (string, error) {
	if _, err := uuid.Parse(name); err == nil {
		return name, nil
	}
	entry, err := s.read(name + intentEnding)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return entry.Intent.Key, err
}

// tidy removes a file of a process that is gone, and a hold of an intent that is.
func (s *FileStore) tidy(ctx context.Context, file string) {
	switch filepath.Ext(file) {
	case holderEnding:
		if s.isUsed(file) {
			return // as most are: nobody has to wait for it
		}
	case ownerEnding, newEnding:
	default:
		return
	}
	s.alone(ctx, func() error { //nolint:errcheck // what stays does no harm.
		if s.isUsed(file) {
			return nil
		}
		return os.Remove(s.path(file))
	})
}

// isUsed reports whether a file that is no intent may be of use to somebody: a
// hold to who holds it, another to its owner. Of an owner it is asked alone.
func (s *FileStore) isUsed(file string) bool {
	if name, isHolder := strings.CutSuffix(file, holderEnding); isHolder {
		_, err := os.Lstat(s.path(name + intentEnding))
		return !errors.Is(err, fs.ErrNotExist)
	}
	owner, _, _ := strings.Cut(file, ".")
	return owner == s.owner || s.alive(owner)
}
