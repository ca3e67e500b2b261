package redisstore

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

//go:embed range.lua
var rangeText string

var rangeScript = rueidis.NewLuaScript(rangeText)

// The parts of an index.
const (
	partOpen    = "open"    // running and unknown, by first start
	partKept    = "kept"    // done and released, by expiry; and tombstones
	partExpired = "expired" // the same, past it
)

// fromFirst is the score in the open part that the oldest have the lowest
// distance to.
const fromFirst = "-1"

// member is a record as the index knows it.
type member struct {
	at    place
	score float64 // microseconds
}

// page is a part of a part.
type page struct {
	members []member
	now     int64 // on the server's clock
}

// page returns at most limit members of a part of a bucket's index. A bucket's
// clock is learned by it.
func (s *Store) page(ctx context.Context, bucket int, part, from string, offset, limit int) (page, error) {
	sent := time.Now()
	args := []string{part, strconv.Itoa(offset), strconv.Itoa(limit), from}
	words, err := s.exec(ctx, rangeScript, s.withShift(bucket, s.placeIn(bucket, "").index()), args)
	if err != nil {
		return page{}, err
	}
	_, now, err := s.heading(bucket, sent, words)
	if err != nil {
		return page{}, err
	}
	if len(words) != 4 {
		return page{}, fmt.Errorf("the script answered %d words, want 4", len(words))
	}
	list, err := words[3].ToArray()
	if err != nil {
		return page{}, err
	}
	p := page{now: now, members: make([]member, 0, len(list)/2)}
	for i := 0; i+1 < len(list); i += 2 {
		id, err := list[i].ToString()
		if err != nil {
			return page{}, err
		}
		score, err := list[i+1].AsFloat64()
		if err != nil {
			return page{}, err
		}
		p.members = append(p.members, member{at: s.placeIn(bucket, id), score: score})
	}
	return p, nil
}

// withShift adds to the name that a script may touch the one of the clock's
// shift, in a test.
func (s *Store) withShift(bucket int, name string) []string {
	if s.shift == "" {
		return []string{name}
	}
	return []string{name, s.tags[bucket] + s.shift}
}
