package sqlstore

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestStatementsFitTheirColumns(t *testing.T) {
	t.Parallel()
	var v values
	names := strings.Split(columns, ",")
	assert.Equal(t, len(v.targets()), len(names), "columns that are read")
	args, err := (&row{}).args()
	assert.NoError(t, err)
	assert.Equal(t, len(args), len(names), "columns that are written")
	assert.Equal(t, strings.Count(insertRecord, "?"), len(names), "placeholders of INSERT")
	assert.Equal(t, strings.Count(updateRecord(), "?"), len(names)+3, "placeholders of UPDATE")
}

// dialects are all there are.
var dialects = map[string]*dialect{"SQLite": sqlite(), "PostgreSQL": postgres(), "MariaDB": mariadb()}

func TestDialectsFillInEveryStatement(t *testing.T) {
	t.Parallel()
	mayBeEmpty := []string{"claim", "extend", "finish", "waits"}
	for dialect, d := range dialects {
		all := reflect.ValueOf(d.filler("", "", semel.Durable).statements())
		for i := range all.NumField() {
			name, text := all.Type().Field(i).Name, fmt.Sprint(all.Field(i))
			assert.True(t, text != "" || slices.Contains(mayBeEmpty, name), "%s of %s has a text", name, dialect)
			assert.True(t, !strings.Contains(text, "{"), "%s of %s has nothing left to fill in: %s", name, dialect, text)
			assert.True(t, !d.numbered || !strings.Contains(text, "?"), "placeholders of %s of %s are numbered: %s", name, dialect, text)
		}
	}
}

func TestPlaceholdersAreNumberedInTheirOrder(t *testing.T) {
	t.Parallel()
	assert.Equal(t, postgres().placeholders("a = ? AND b = ?"), "a = $1 AND b = $2")
	assert.Equal(t, sqlite().placeholders("a = ? AND b = ?"), "a = ? AND b = ?")
}
