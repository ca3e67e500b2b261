package migrate

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/semel-dev/semel/internal/assert"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"only comments", "-- +goose Up\n\n-- Notes.\n", nil},
		{"statements end with their line", "A;\nB\n C;\n", []string{"A;", "B\n C;"}},
		{"comments before a statement are the file's", "-- note;\nA;\n", []string{"A;"}},
		{"a block holds semicolons", "-- +goose StatementBegin\nA\n B;\nEND;\n-- +goose StatementEnd\nC;\n", []string{"A\n B;\nEND;", "C;"}},
		{"without a line end at the end", "A;", []string{"A;"}},
		{"with line ends of Windows", "A;\r\nB;\r\n", []string{"A;", "B;"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(c.text)
			assert.NoError(t, err)
			assert.Equal(t, got, c.want)
		})
	}
}

func TestParseRefusesAFileThatIsCutOff(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"A",
		"A;\nB\n",
		"-- +goose StatementBegin\nA;\n",
		"-- +goose StatementEnd\n",
		"-- +goose StatementBegin\n-- +goose StatementBegin\n",
	} {
		_, err := parse(text)
		assert.True(t, err != nil, "%q is refused", text)
	}
}

func TestSetsAreComplete(t *testing.T) {
	t.Parallel()
	for _, s := range []Set{SQLite(), PostgreSQL(), MariaDB()} {
		all, err := s.migrations()
		assert.NoError(t, err)
		for _, m := range all {
			for _, direction := range []string{"up", "down"} {
				stmts, err := s.statements(m, direction)
				assert.NoError(t, err)
				assert.True(t, len(stmts) > 0, "%s.%s has statements", m.name, direction)
			}
		}
		latest, err := s.Latest()
		assert.NoError(t, err)
		assert.Equal(t, latest, len(all))
	}
}

func TestSetsWithAGapAreRefused(t *testing.T) {
	t.Parallel()
	file := &fstest.MapFile{Data: []byte("A;\n")}
	for _, names := range [][]string{
		{},
		{"0002_second"},
		{"0001_first", "0003_third"},
		{"0001_first", "0001_twin"},
		{"first"},
	} {
		files := fstest.MapFS{}
		for _, name := range names {
			files["sqlite/"+name+".up.sql"] = file
		}
		_, err := Set{files: fs.FS(files), dir: "sqlite"}.Latest()
		assert.True(t, err != nil, "%v is refused", names)
	}
}
