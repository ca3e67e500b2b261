package semelclient

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/semel-dev/semel"
)

// storedIntent is an intent as stores keep it.
type storedIntent struct {
	Key        string      `json:"key"`
	Method     string      `json:"method"`
	URL        string      `json:"url"`
	Header     http.Header `json:"header"`
	Body       []byte      `json:"body"`
	Created    time.Time   `json:"created"`
	Settlement *Settlement `json:"settlement,omitempty"`
}

// heading begins a file; the digest of what follows stands behind it, so that
// a file that is not as it was written is found, and never sent.
const heading = "semel intent 1 sha256 "

func encodeIntent(in Intent, s *Settlement) ([]byte, error) {
	content, err := json.Marshal(storedIntent{in.Key, in.Method, in.URL, in.Header, in.Body, in.Created, s})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	return append([]byte(heading+hex.EncodeToString(sum[:])+"\n"), content...), nil
}

// decodeIntent reads what encodeIntent wrote. The error matches
// ErrIntentDamaged.
func decodeIntent(text []byte) (Entry, error) {
	line, content, _ := bytes.Cut(text, []byte("\n"))
	sum := sha256.Sum256(content)
	if string(line) != heading+hex.EncodeToString(sum[:]) {
		return Entry{}, ErrIntentDamaged
	}
	var stored storedIntent
	if err := json.Unmarshal(content, &stored); err != nil {
		return Entry{}, semel.NewError(CodeIntentDamaged, err, "the stored intent cannot be read")
	}
	return Entry{
		Intent: Intent{
			Key: stored.Key, Method: stored.Method, URL: stored.URL, Header: stored.Header, Body: stored.Body, Created: stored.Created,
		},
		Settlement: stored.Settlement,
	}, nil
}

// read reads a file of the folder.
func (s *FileStore) read(file string) (Entry, error) {
	text, err := os.ReadFile(s.path(file))
	if err != nil {
		return Entry{}, err
	}
	entry, err := decodeIntent(text)
	if err != nil {
		return Entry{}, semel.NewError(CodeIntentDamaged, err, "the file %s is not as it was written", file)
	}
	return entry, nil
}

// write writes a file beside its name, whole and on disk, and returns its path.
func (s *FileStore) write(in Intent, settlement *Settlement) (string, error) {
	content, err := encodeIntent(in, settlement)
	if err != nil {
		return "", err
	}
	path := s.path(s.owner + "." + uuid.NewString() + newEnding)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(path)
		return "", err
	}
	return path, nil
}

// syncFolder makes the names in the folder durable.
func (s *FileStore) syncFolder() error {
	f, err := os.Open(s.folder)
	if err != nil {
		return err
	}
	err = f.Sync()
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
