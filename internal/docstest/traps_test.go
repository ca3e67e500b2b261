package docstest

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// trapStores are the stores over SQL.
var trapStores = momentStores[1:5]

var trapRow = regexp.MustCompile(`(?m)^\| ([0-9]+) \|(.*)\|$`)

// traps is how many rows docs/sql-traps.md has.
const traps = 16

// TestEachTrapIsTriedOnEachStore: each has tests on every store over SQL but
// those that it names. That the tests exist is held by
// TestTestsNamedAsProofExist.
func TestEachTrapIsTriedOnEachStore(t *testing.T) {
	t.Parallel()
	rows := trapRow.FindAllStringSubmatch(read(t, "docs/sql-traps.md"), -1)
	assert.Equal(t, len(rows), traps, "traps")
	for i, m := range rows {
		assert.Equal(t, m[1], strconv.Itoa(i+1), "the number of a trap")
		cells := strings.Split(m[2], "|")
		if len(cells) != 5 {
			t.Errorf("trap %s has %d cells, want what looks right, the rule, what was taken out, tests, and where it cannot be", m[1], len(cells))
			continue
		}
		left := map[string]bool{}
		for _, store := range trapStores {
			left[store] = true
		}
		for _, test := range namedAsMoment.FindAllStringSubmatch(cells[3], -1) {
			for _, store := range storesOf(test[1]) {
				delete(left, store)
			}
		}
		not, _, _ := strings.Cut(cells[4], ":")
		for store := range strings.SplitSeq(not, ",") {
			delete(left, strings.TrimSpace(store))
		}
		assert.Equal(t, slices.Sorted(maps.Keys(left)), nil, "stores on which nothing tries trap %s", m[1])
	}
}
