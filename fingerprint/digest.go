package fingerprint

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"sync"

	"github.com/semel-dev/semel"
)

// digester hashes framed fields. Every field is preceded by its length and
// every list by its count, so that no two sequences of fields give the same
// bytes. It is reused: a fingerprint of a small request allocates nothing for
// the hashing itself.
type digester struct {
	hash   hash.Hash
	frame  []byte       // fields not yet hashed
	out    semel.Digest // where the hash writes its sum
	text   []byte       // canonical JSON
	names  []span       // of its members
	params []param      // of the request's media type
}

// The most scratch space that a digester keeps when it is put back.
const (
	keptBytes = 64 << 10
	keptNames = 4 << 10
)

var digesters = sync.Pool{New: func() any { return &digester{hash: sha256.New()} }}

func getDigester() *digester {
	d, _ := digesters.Get().(*digester) // the pool holds nothing else
	return d
}

func (d *digester) put() {
	if cap(d.text) > keptBytes {
		d.text = nil
	}
	if cap(d.frame) > keptBytes {
		d.frame = nil
	}
	if cap(d.names) > keptNames {
		d.names = nil
	}
	clear(d.params) // they point into the request
	digesters.Put(d)
}

func (d *digester) number(n int) {
	d.frame = binary.BigEndian.AppendUint64(d.frame, uint64(n))
}

func (d *digester) flag(on bool) {
	var b byte
	if on {
		b = 1
	}
	d.frame = append(d.frame, b)
}

func (d *digester) field(s string) {
	d.number(len(s))
	d.frame = append(d.frame, s...)
}

func (d *digester) list(values []string) {
	d.number(len(values))
	for _, v := range values {
		d.field(v)
	}
}

// digest adds a digest. Its length is known, so it has no prefix.
func (d *digester) digest(sum semel.Digest) {
	d.frame = append(d.frame, sum[:]...)
}

// block adds a field that is too long to be worth copying.
func (d *digester) block(b []byte) {
	d.number(len(b))
	d.flush()
	d.hash.Write(b)
}

func (d *digester) flush() {
	d.hash.Write(d.frame)
	d.frame = d.frame[:0]
}

// sum returns the digest of what was added and starts anew.
func (d *digester) sum() semel.Digest {
	d.flush()
	d.hash.Sum(d.out[:0])
	d.hash.Reset()
	return d.out
}

// sumOf returns the digest of b alone.
func (d *digester) sumOf(b []byte) semel.Digest {
	d.hash.Write(b)
	return d.sum()
}

// drop forgets what was added.
func (d *digester) drop() {
	d.frame = d.frame[:0]
	d.hash.Reset()
}

// typed adds a media type or a disposition with its parameters, by name.
func (d *digester) typed(kind string, params []param) {
	slices.SortFunc(params, param.compare)
	d.field(kind)
	d.number(len(params))
	for _, p := range params {
		d.field(p.name)
		d.field(p.value)
	}
}
