package archtest

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/semel-dev/semel"
)

// notOurs are folders without text of this repository.
var notOurs = map[string]bool{".git": true, "bin": true, "demo-data": true, "node_modules": true}

// texts are the extensions of files that people wrote.
var texts = map[string]bool{
	".go": true, ".md": true, ".js": true, ".css": true, ".html": true, ".sql": true,
	".yaml": true, ".yml": true, ".json": true, ".txt": true, ".mod": true, "": true,
}

// file is one file of the repository: its path with slashes, from the root.
type file struct {
	path string
	text string
	ast  *ast.File // of Go source
}

func (f *file) folder() string { return path.Dir(f.path) }
func (f *file) isGo() bool     { return f.ast != nil }
func (f *file) isTest() bool   { return strings.HasSuffix(f.path, "_test.go") }
func (f *file) inTestdata() bool {
	return strings.Contains("/"+f.path, "/testdata/")
}

// lines is how long f is.
func (f *file) lines() int { return strings.Count(f.text, "\n") }

// line is where pos stands in f.
func (f *file) line(pos token.Pos) int { return fileSet.Position(pos).Line }

var fileSet = token.NewFileSet()

var readTree = sync.OnceValues(func() ([]*file, error) {
	var files []*file
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a test of another package tidied up behind our back
		case err != nil:
			return err
		case d.IsDir() && notOurs[d.Name()]:
			return filepath.SkipDir
		case !d.Type().IsRegular() || !texts[filepath.Ext(name)]:
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f := &file{path: filepath.ToSlash(rel), text: string(text)}
		if strings.HasSuffix(name, ".go") && !f.inTestdata() {
			f.ast, err = parser.ParseFile(fileSet, rel, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
		}
		files = append(files, f)
		return nil
	})
	return files, err
})

// tree returns every text file of the repository.
func tree(t *testing.T) []*file {
	t.Helper()
	files, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// goFiles returns the Go source that is not a test.
func goFiles(t *testing.T) []*file {
	t.Helper()
	var source []*file
	for _, f := range tree(t) {
		if f.isGo() && !f.isTest() {
			source = append(source, f)
		}
	}
	return source
}

// isLibrary reports whether a folder belongs to what others import.
func isLibrary(folder string) bool {
	return !strings.HasPrefix(folder, "cmd") && !strings.HasPrefix(folder, "internal/")
}
