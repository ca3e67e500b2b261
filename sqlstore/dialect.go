package sqlstore

import (
	"strings"

	"github.com/semel-dev/semel/migrate"
)

// dialect is what one database says differently from another: data only, the
// behaviour is the same for all.
type dialect struct {
	now        string // the clock, in microseconds since 1970
	lock       string // what a SELECT adds to keep the row from other writers
	migrations migrate.Set
}

// sqlite is the dialect of SQLite 3.42 and later.
func sqlite() *dialect {
	return &dialect{
		now:        "CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER) * 1000",
		lock:       "", // BEGIN IMMEDIATE has the whole file
		migrations: migrate.SQLite(),
	}
}

// statements are the texts in one dialect.
type statements struct {
	read, readToWrite   string
	insert, update      string
	raised, sweep       string
	audit, auditsOf     string
	savepoint, released string
}

func (d *dialect) statements() statements {
	r := strings.NewReplacer("{now}", d.now, "{lock}", d.lock)
	return statements{
		read:        r.Replace(selectRecord),
		readToWrite: r.Replace(selectRecord + "{lock}"),
		insert:      insertRecord,
		update:      updateRecord,
		raised:      r.Replace(selectRaised),
		sweep:       r.Replace(deleteExpired),
		audit:       insertAudit,
		auditsOf:    selectAudits,
		savepoint:   "SAVEPOINT " + savepointName,
		released:    "RELEASE SAVEPOINT " + savepointName,
	}
}
