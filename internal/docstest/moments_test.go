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

// The stores that the moments of docs/guarantees.md can happen to.
var momentStores = []string{"memory", "SQLite", "PostgreSQL by pgx", "PostgreSQL", "MariaDB", "Redis"}

// triedOn are the stores that a test named there is run on: by the beginning of
// its name, the longest first.
var triedOn = []struct {
	name   string
	stores []string
}{
	{"storetest/crash point 4: takeovers against a joined commit", momentStores[1:5]},
	{"storetest/crash point 7: a joined owner", momentStores[1:5]},
	{"storetest/joined mode", momentStores[1:5]},
	{"storetest/atomic mode", momentStores[2:3]},
	{"storetest/several processes", momentStores[1:]},
	{"storetest/", momentStores},
	{"TestConnectionsThatAreCut", momentStores[2:]},
	{"TestLeaseThatCannotBeRenewed", momentStores[2:]},
	{"TestHTTPCases", momentStores[1:]},
	{"TestNothingOfAHandlerIsLeftOnItsConnection", momentStores[1:5]},
	{"TestPostgresAndMariaDB", momentStores[2:5]},
	{"TestPostgresOwnStatements", momentStores[2:4]},
	{"TestPostgresReply", momentStores[2:4]},
	{"TestOpenPostgreSQL", momentStores[3:4]},
	{"TestPgBouncer", momentStores[3:4]},
	{"TestSQLite", momentStores[1:2]},
	{"TestJoinedTx", momentStores[1:2]},
	{"TestPgx", momentStores[2:3]},
	{"TestServers", momentStores[3:5]},
	{"TestPostgres", momentStores[3:4]},
	{"TestMariaDB", momentStores[4:5]},
	{"TestRedis", momentStores[5:]},
	{"Test", momentStores[:1]}, // those of the guard
}

var (
	momentRow     = regexp.MustCompile(`(?m)^\| ([0-9]+) \|(.*)\|$`)
	crashChapter  = regexp.MustCompile(`\{name: "(crash point ([0-9]+): [^"]+)", rules: `)
	namedAsMoment = regexp.MustCompile("`([^`]+)`")
)

// TestEachMomentIsTriedOnEachStore: the table has all of them, each with tests
// on every store but those that it names, and misses no chapter of the contract.
// That the tests exist is held by TestTestsNamedAsProofExist.
func TestEachMomentIsTriedOnEachStore(t *testing.T) {
	t.Parallel()
	rows := map[string]string{}
	_, table, _ := strings.Cut(read(t, "docs/guarantees.md"), "\n## The moments at which things go wrong\n")
	for _, m := range momentRow.FindAllStringSubmatch(table, -1) {
		rows[m[1]] += m[2]
	}
	for n := 1; n <= 15; n++ {
		row := rows[strconv.Itoa(n)]
		cells := strings.Split(row, "|")
		if len(cells) != 4 {
			t.Errorf("moment %d has %d cells, want what it is, what is to come of it, tests, and where it cannot be", n, len(cells))
			continue
		}
		left := map[string]bool{}
		for _, store := range momentStores {
			left[store] = true
		}
		for _, m := range namedAsMoment.FindAllStringSubmatch(cells[2], -1) {
			for _, store := range storesOf(m[1]) {
				delete(left, store)
			}
		}
		not, _, _ := strings.Cut(cells[3], ":")
		for store := range strings.SplitSeq(not, ",") {
			delete(left, strings.TrimSpace(store))
		}
		assert.Equal(t, slices.Sorted(maps.Keys(left)), nil, "stores on which nothing tries moment %d", n)
	}
	for _, path := range files(t, ".go") {
		if !strings.HasPrefix(path, "storetest/") {
			continue
		}
		for _, m := range crashChapter.FindAllStringSubmatch(read(t, path), -1) {
			assert.Contains(t, rows[m[2]], "`storetest/"+m[1]+"`", "moment %s", m[2])
		}
	}
}

func storesOf(test string) []string {
	for _, of := range triedOn {
		if strings.HasPrefix(test, of.name) {
			return of.stores
		}
	}
	return nil
}
