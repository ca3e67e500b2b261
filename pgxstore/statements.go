package pgxstore

import "strings"

// statements are the texts of all calls, with the tables named by the schema
// that they are in: a handler, or a client of the same pooler, may have changed
// where names are looked for, or have a temporary table of the same name. For
// that reason functions are called by their whole names everywhere.
type statements struct {
	read, lock                      string
	claimNew, claimSeen, claimAgain string
	save                            string
	renew, finish                   string
	endClaimed, endNew, endSeen     string
	list, operation                 string
	turn, lag                       string
	lockRaised, deleteExpired       string
	audit, audits                   string
}

// statementsIn returns the texts for a schema, which is quoted where it must be,
// with shift added to the clock, if there is one. What ends a claim in a
// transaction of others has it wait for the disk, if the store is durable.
func statementsIn(schema, shift string, durable bool) statements {
	names := []string{"semel_records", schema + ".semel_records", "semel_audit", schema + ".semel_audit", "semel_sweep", schema + ".semel_sweep"}
	if shift != "" {
		names = append(names, now, "("+now+" + "+shift+")", asked, "("+asked+" + (SELECT "+shift+"))")
	}
	tables := strings.NewReplacer(names...)
	finish := finishRunning
	if durable {
		finish = strings.Replace(finish, "AS now)", "AS now, "+waits+")", 1)
	}
	return statements{
		read:          tables.Replace(selectRecord),
		lock:          tables.Replace(lockRecord),
		claimNew:      tables.Replace(claimNew),
		claimSeen:     tables.Replace(claimSeen),
		claimAgain:    tables.Replace(claimAgain),
		save:          tables.Replace(saveOld),
		renew:         tables.Replace(renewRunning),
		finish:        tables.Replace(finish),
		endClaimed:    tables.Replace(endClaimed),
		endNew:        tables.Replace(endNew),
		endSeen:       tables.Replace(endSeen),
		list:          tables.Replace(listed),
		operation:     tables.Replace(selectOperation),
		turn:          tables.Replace(takeTurn),
		lag:           tables.Replace(selectLag),
		lockRaised:    tables.Replace(lockRaised),
		deleteExpired: tables.Replace(deleteExpired),
		audit:         tables.Replace(insertAudit),
		audits:        tables.Replace(selectAudits),
	}
}

// selectSchema finds the schema that the tables are in. A temporary table of
// somebody else's is none of them.
const selectSchema = `SELECT pg_catalog.quote_ident(s.name) FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY AS s (name, n)
JOIN pg_catalog.pg_tables AS t ON t.schemaname = s.name AND t.tablename = 'semel_records'
WHERE s.name NOT LIKE 'pg\_temp%' ORDER BY s.n LIMIT 1`
