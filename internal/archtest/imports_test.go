package archtest

import (
	"encoding/json"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport says, for each folder of the library, which other folders of it
// its code may import; "." is the root package. Tests may import more, but
// never what stands above the library. A new folder needs a row here.
var mayImport = map[string][]string{
	".":                           {},
	"fingerprint":                 {".", "internal/httpfield"},
	"idempotencykey":              {"."},
	"js":                          {},
	"memstore":                    {"."},
	"migrate":                     {},
	"pgxstore":                    {".", "migrate", "internal/sqltext", "internal/testhook"},
	"redisstore":                  {".", "internal/testhook"},
	"sqlstore":                    {".", "migrate", "internal/sqltext", "internal/testhook"},
	"storetest":                   {".", "internal/assert"},
	"semelclient":                 {".", "idempotencykey", "internal/httpfield", "internal/wellknown", "semelclient/retry"},
	"semelclient/retry":           {"."},
	"semelhttp":                   {".", "fingerprint", "idempotencykey", "internal/httpfield"},
	"semelotel":                   {"."},
	"check":                       {"internal/httpfield", "internal/wellknown"},
	"check/brokentest":            {"idempotencykey"},
	"internal/archtest":           {},
	"internal/assert":             {},
	"internal/docstest":           {},
	"internal/docstest/tinystore": {"."},
	"internal/httpfield":          {},
	"internal/intenttest":         {"semelclient", "internal/assert"},
	"internal/sqltext":            {},
	"internal/testhook":           {},
	"internal/testreport":         {},
	"internal/vectors":            {"internal/assert"},
	"internal/wellknown":          {},
}

// mayRequire is all that the library's module may require: each is small, and
// none requires anything that users would notice.
var mayRequire = []string{
	"github.com/dunglas/httpsfv",
	"github.com/go-json-experiment/json",
	"github.com/google/uuid",
}

// above are the modules that stand on the library.
var above = []string{"cmd", "internal/integration"}

// beside are the modules of the library that keep a heavy client to themselves.
var beside = []string{"pgxstore", "redisstore", "semelotel"}

func TestImportsRunDownward(t *testing.T) {
	t.Parallel()
	for _, f := range tree(t) {
		if !f.isGo() {
			continue
		}
		for _, target := range imports(f) {
			if problem := wrongImport(f.folder(), target, f.isTest()); problem != "" {
				t.Errorf("%s: imports %s: %s", f.path, target, problem)
			}
		}
	}
}

// imports returns the folders of this repository that f imports.
func imports(f *file) []string {
	var folders []string
	for _, spec := range f.ast.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has seen it: it is a string
		}
		if name == module {
			folders = append(folders, ".")
		} else if folder, ok := strings.CutPrefix(name, module+"/"); ok {
			folders = append(folders, folder)
		}
	}
	return folders
}

// wrongImport says what is wrong with code in folder importing target, if
// anything is.
func wrongImport(folder, target string, test bool) string {
	from, to := moduleOf(folder), moduleOf(target)
	switch {
	case slices.Contains(above, to) && from != to:
		return "nothing imports module " + to + " from outside"
	case slices.Contains(above, from):
		return ""
	case slices.Contains(beside, to) && from != to:
		return "only what stands above the library imports module " + to
	case test:
		return ""
	}
	allowed, known := mayImport[folder]
	switch {
	case !known:
		return "this folder has no row in mayImport yet"
	case !slices.Contains(allowed, target):
		return "only " + strings.Join(allowed, ", ") + " may be imported here"
	}
	return ""
}

// moduleOf returns the folder of the module that a folder belongs to.
func moduleOf(folder string) string {
	for _, m := range slices.Concat(above, beside) {
		if folder == m || strings.HasPrefix(folder, m+"/") {
			return m
		}
	}
	return "."
}

func TestTheImportRulesCatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		folder, target string
		test           bool
		wrong          bool
	}{
		{"the root package importing a store", ".", "memstore", false, true},
		{"an adapter importing a store", "semelhttp", "sqlstore", false, true},
		{"a store importing an adapter", "memstore", "semelhttp", false, true},
		{"a store importing another", "sqlstore", "memstore", false, true},
		{"the library importing a command", "semelhttp", "cmd/semel", false, true},
		{"a library's test importing a command", "semelhttp", "cmd/semel", true, true},
		{"a folder without a row importing anything", "novel", ".", false, true},
		{"the library importing a module beside it", "semelhttp", "semelotel", false, true},
		{"a library's test importing a module beside it", "semelhttp", "semelotel", true, true},
		{"a module beside the library importing an adapter", "semelotel", "semelhttp", false, true},
		{"but not a test importing a store", "semelhttp", "memstore", true, false},
		{"nor an adapter importing the root", "semelhttp", ".", false, false},
		{"nor a command importing a store", "cmd/semel", "sqlstore", false, false},
		{"nor a command importing a module beside the library", "cmd/semel", "semelotel", false, false},
		{"nor a module beside the library importing the root", "semelotel", ".", false, false},
		{"nor its test importing an adapter", "semelotel", "semelhttp", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := wrongImport(c.folder, c.target, c.test); (got != "") != c.wrong {
				t.Errorf("got %q, want a problem: %v", got, c.wrong)
			}
		})
	}
}

func TestTheLibraryRequiresOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", path.Join(root, "go.mod")).Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct{ Path string }
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range mod.Require {
		got = append(got, r.Path)
	}
	slices.Sort(got)
	if !slices.Equal(got, mayRequire) {
		t.Errorf("got the requirements %v, want %v", got, mayRequire)
	}
	if len(mod.Replace) > 0 {
		t.Errorf("got the replacements %v, want none: users do not see them", mod.Replace)
	}
}
