package redisstore

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// buckets is how many parts the records are spread over. Each has a hash tag
// and an index of its own, so that a record and its place in the index are in
// one slot of a Redis Cluster, and one script may write both. It cannot change
// without losing sight of what is stored.
const buckets = 256

// tagsOf returns the hash tags of a prefix: what Redis Cluster derives the slot
// of a name from.
func tagsOf(prefix string) *[buckets]string {
	var tags [buckets]string
	for i := range tags {
		tags[i] = fmt.Sprintf("{%s:%02x}", prefix, i)
	}
	return &tags
}

// place is where a record is kept.
type place struct {
	bucket int
	tag    string
	id     string // of the record; its member of the index
}

// placeOf derives it from scope and key as bytes, with a length before each, so
// that "a" and "b/c" are not "a/b" and "c" (R11).
func (s *Store) placeOf(scope, key string) place {
	b := make([]byte, 0, 16+len(scope)+len(key))
	for _, part := range [...]string{scope, key} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return s.placeIn(int(sum[0]), base64.RawURLEncoding.EncodeToString(sum[:]))
}

// placeIn is the place of a member of a bucket's index.
func (s *Store) placeIn(bucket int, id string) place {
	return place{bucket: bucket, tag: s.tags[bucket], id: id}
}

// The names of what is stored.
func (p place) record() string { return p.tag + ":record:" + p.id }
func (p place) index() string  { return p.tag + ":index" }
func (p place) audit() string  { return p.tag + ":audit:" + p.id }
