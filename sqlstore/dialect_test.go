package sqlstore

import (
	"reflect"
	"strings"
	"testing"

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
	assert.Equal(t, strings.Count(updateRecord, "?"), len(names)+2, "placeholders of UPDATE")

	set, _, _ := strings.Cut(strings.TrimPrefix(updateRecord, "UPDATE semel_records SET"), "WHERE")
	for i, assignment := range strings.Split(set, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(assignment), " ")
		assert.Equal(t, name, strings.TrimSpace(names[i]), "column %d of UPDATE", i+1)
	}
}

func TestDialectsFillInEveryStatement(t *testing.T) {
	t.Parallel()
	all := reflect.ValueOf(sqlite().statements())
	for i := range all.NumField() {
		name, text := all.Type().Field(i).Name, all.Field(i).String()
		assert.True(t, text != "", "%s has a text", name)
		assert.True(t, !strings.Contains(text, "{"), "%s has nothing left to fill in: %s", name, text)
	}
}
