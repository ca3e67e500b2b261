package sqltext

import "slices"

// SQLite is SQLite's.
var SQLite = Dialect{
	reading: reading{brackets: true},
	quotes:  "'\"`", names: "'\"`[", parameters: true, lineEnds: "\n",
	refuses: func(words []string) string {
		if endsAnywhere(words) {
			return ending(words[0])
		}
		return ""
	},
	leaves: func(words []string) bool {
		switch words[0] {
		case "PRAGMA", "ATTACH", "DETACH":
			return true
		}
		return makesTemporary(words)
	},
	leaving: [][]string{{"TEMP", "."}},
}

// makesTemporary knows the statements that make something that lasts as long as
// the session.
func makesTemporary(words []string) bool {
	return words[0] == "CREATE" && (slices.Contains(words, "TEMPORARY") || slices.Contains(words, "TEMP"))
}

// PostgreSQL is PostgreSQL's.
var PostgreSQL = Dialect{
	others: []reading{{backslash: "'"}}, // standard_conforming_strings is off
	quotes: "'\"", names: `"`, dollars: true, nested: true, lineEnds: "\r\n",
	refuses: func(words []string) string {
		if endsAnywhere(words) || words[0] == "ABORT" || words[0] == "PREPARE" && slices.Contains(words[1:], "TRANSACTION") {
			return ending(words[0])
		}
		return ""
	},
	leaves: postgresLeaves,
	leaving: [][]string{
		{"INTO", "TEMP"},
		{"INTO", "TEMPORARY"},
		{"LOCAL", "TEMP"},
		{"LOCAL", "TEMPORARY"},
		{"GLOBAL", "TEMP"},
		{"GLOBAL", "TEMPORARY"},
		{"WITH", "HOLD"},
		{"PG_ADVISORY_LOCK", "("},
		{"PG_ADVISORY_LOCK_SHARED", "("},
		{"PG_TRY_ADVISORY_LOCK", "("},
		{"PG_TRY_ADVISORY_LOCK_SHARED", "("},
		{"SETSEED", "("},
	},
	// The schema may be that of a search path, the view can be written to, and
	// what stands in U&"…" is not read.
	mentions: []string{"pg_temp", "pg_settings", `u&"`, "u&'"},
}

// postgresLeaves knows what a session keeps: settings but those of SET LOCAL,
// listeners, prepared statements, libraries and temporary tables.
func postgresLeaves(words []string) bool {
	switch words[0] {
	case "SET":
		return len(words) < 2 || !slices.Contains([]string{"LOCAL", "TRANSACTION", "CONSTRAINTS"}, words[1])
	case "RESET", "LISTEN", "UNLISTEN", "PREPARE", "DEALLOCATE", "DISCARD", "LOAD":
		return true
	case "EXPLAIN": // may run what follows
		return slices.Contains(words, "CREATE") && (slices.Contains(words, "TEMPORARY") || slices.Contains(words, "TEMP"))
	}
	return makesTemporary(words)
}

// MariaDB is MariaDB's.
var MariaDB = Dialect{
	reading: reading{backslash: "'\""},
	// By sql_mode: NO_BACKSLASH_ESCAPES, ANSI_QUOTES, and MSSQL with either.
	others: []reading{{}, {backslash: "'"}, {brackets: true}, {backslash: "'", brackets: true}, {backslash: "'\"", brackets: true}},
	quotes: "'\"`", names: "`\"", mariadb: true, lineEnds: "\n",
	refuses:  mariadbRefuses,
	harmless: mariadbHarmless,
	leaves:   mariadbLeaves,
	leaving:  [][]string{{"GET_LOCK", "("}, {":", "="}, {"INTO", "@"}},
}

func mariadbRefuses(words []string) string {
	switch {
	case slices.Contains(words, executable):
		return "a comment that the server executes (" + executable + " …) is refused: it is not looked into"
	case mariadbEnds(words):
		return ending(words[0])
	case words[0] == "SET" && setsGlobally(words):
		return "SET GLOBAL is refused: it is no part of the transaction, and stays when that is undone"
	}
	return ""
}

// mariadbEnds knows what commits by itself besides: what changes the schema, the
// users or the server, table locks, and autocommit.
// https://mariadb.com/kb/en/sql-statements-that-cause-an-implicit-commit/
func mariadbEnds(words []string) bool {
	switch words[0] {
	case "CREATE", "DROP":
		return !slices.Contains(words[1:], "TEMPORARY")
	case "ALTER", "RENAME", "TRUNCATE", "LOCK", "UNLOCK", "GRANT", "REVOKE", "XA", "FLUSH", "RESET", "CHECK", "OPTIMIZE", "REPAIR",
		"CACHE", "INSTALL", "UNINSTALL", "CHANGE", "STOP", "SHUTDOWN", "BACKUP", "BINLOG", "PURGE":
		return true
	case "ANALYZE":
		return slices.ContainsFunc(words[1:], func(w string) bool { return w == "TABLE" || w == "LOCAL" || w == "NO_WRITE_TO_BINLOG" })
	case "LOAD":
		return len(words) > 1 && words[1] == "INDEX"
	case "SET":
		return slices.Contains(words, "AUTOCOMMIT") || len(words) > 1 && (words[1] == "PASSWORD" || words[1] == "DEFAULT" || words[1] == "ROLE")
	}
	return endsAnywhere(words)
}

// setsGlobally reports whether a SET names a setting of the whole server: where
// a name begins, as GLOBAL or as @@GLOBAL.
func setsGlobally(words []string) bool {
	for i, word := range words[1:] {
		if before := words[i]; word == "GLOBAL" && (before == "SET" || before == "," || before == "@") {
			return true
		}
	}
	return false
}

// mariadbHarmless knows the statements that run no other ones: not CALL, which
// may run a procedure that commits, nor EXECUTE, nor whatever else there is.
func mariadbHarmless(words []string) bool {
	switch words[0] {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES", "(", "SHOW", "EXPLAIN", "DESCRIBE", "DESC",
		"SAVEPOINT", "RELEASE", "ROLLBACK", "DO", "USE":
		return true
	case "SET":
		// A name in quotes may be that of autocommit, and what comes after a change
		// of sql_mode, in the same text too, is read in another way.
		if len(words) > 1 && words[1] == "STATEMENT" {
			then := slices.Index(words, "FOR") + 1
			return then > 0 && then < len(words) && mariadbHarmless(words[then:])
		}
		return !slices.ContainsFunc(words, func(w string) bool { return w == "`" || w == `"` || w == "SQL_MODE" })
	}
	return false
}

// mariadbLeaves knows what a session keeps: settings, variables, the database
// in use, prepared statements and temporary tables.
func mariadbLeaves(words []string) bool {
	switch words[0] {
	case "SET":
		if len(words) > 1 && words[1] == "STATEMENT" {
			then := slices.Index(words, "FOR") + 1
			return then > 0 && then < len(words) && mariadbLeaves(words[then:])
		}
		return true
	case "USE", "PREPARE", "DEALLOCATE", "EXECUTE", "HANDLER", "LOAD":
		return true
	}
	return makesTemporary(words)
}
