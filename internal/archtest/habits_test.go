package archtest

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// saysWhy marks a line of library code that may panic all the same.
var saysWhy = regexp.MustCompile(`panic\(.*//nolint:forbidigo // \w+`)

// maxLines is where a file of Go or JavaScript wants a reason to be longer.
const maxLines = 500

// mayBeLong are the longer ones, each with its reason.
var mayBeLong = map[string]string{
	"js/semel.js": "a page loads it without a build step: one file is one request, and one route of a service",
}

// noNames are what packages are called when nobody knows what is in them.
var noNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "manager", "base"}

// The patterns are written so that this file does not match them itself.
var forbiddenTexts = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`(^|[^[:alnum:].~])/(wor[k]|roo[t]|hom[e])/[[:alnum:].]`), "a path of somebody's machine"},
	{regexp.MustCompile(`\b(TOD[O]|FIXM[E]|XX[X])\b`), "unfinished work belongs in an issue"},
}

func TestEachPackageHasOneDocComment(t *testing.T) {
	t.Parallel()
	documented := make(map[string][]string)
	folders := make(map[string]bool)
	for _, f := range goFiles(t) {
		folders[f.folder()] = true
		if f.ast.Doc == nil {
			continue
		}
		documented[f.folder()] = append(documented[f.folder()], f.path)
		want := "Package " + f.ast.Name.Name + " "
		if f.ast.Name.Name == "main" {
			want = "Command " + path.Base(f.folder()) + " "
		}
		if !strings.HasPrefix(f.ast.Doc.Text(), want) {
			t.Errorf("%s: got a package comment that begins %.40q, want %q", f.path, f.ast.Doc.Text(), want)
		}
	}
	for folder := range folders {
		if n := len(documented[folder]); n != 1 {
			t.Errorf("%s: got %d package comments %v, want 1", folder, n, documented[folder])
		}
	}
}

func TestNothingRunsAtImport(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s:%d: got an init, want none", f.path, f.line(fn.Pos()))
			}
		}
	}
}

func TestTheLibraryDoesNotPanic(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if !isLibrary(f.folder()) {
			continue
		}
		lines := strings.Split(f.text, "\n")
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "panic" && !saysWhy.MatchString(lines[f.line(call.Pos())-1]) {
				t.Errorf("%s:%d: got a panic, want an error, or a reason beside it as the linter wants it", f.path, f.line(call.Pos()))
			}
			return true
		})
	}
}

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, f := range tree(t) {
		if (f.isGo() || path.Ext(f.path) == ".js") && f.lines() > maxLines && mayBeLong[f.path] == "" {
			t.Errorf("%s: got %d lines, want at most %d, or a reason in mayBeLong", f.path, f.lines(), maxLines)
		}
	}
}

func TestExceptionsAreStillNeeded(t *testing.T) {
	t.Parallel()
	long := make(map[string]bool)
	folders := make(map[string]bool)
	for _, f := range tree(t) {
		long[f.path] = f.lines() > maxLines
		folders[f.folder()] = true
	}
	for name := range mayBeLong {
		if !long[name] {
			t.Errorf("%s: may be long and is not, or does not exist", name)
		}
	}
	for folder := range mayImport {
		if !folders[folder] {
			t.Errorf("%s: has a row in mayImport and does not exist", folder)
		}
	}
}

func TestPackagesAreNamedForWhatTheyHold(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if slices.Contains(noNames, strings.TrimSuffix(f.ast.Name.Name, "_test")) {
			t.Errorf("%s: got package %s, want a name that says what is in it", f.path, f.ast.Name.Name)
		}
	}
}

func TestTestsAreSkippedInOnePlace(t *testing.T) {
	t.Parallel()
	for _, f := range tree(t) {
		if !f.isGo() || f.folder() == "internal/assert" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && (x.Name == "t" || x.Name == "tb" || x.Name == "b") && strings.HasPrefix(sel.Sel.Name, "Skip") {
				t.Errorf("%s:%d: got %s.%s, want assert.Skip, which SEMEL_TEST_REQUIRE turns into a failure", f.path, f.line(sel.Pos()), x.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

func TestNoTextIsForbidden(t *testing.T) {
	t.Parallel()
	for _, f := range tree(t) {
		for i, line := range strings.Split(f.text, "\n") {
			for _, forbidden := range forbiddenTexts {
				if found := forbidden.pattern.FindString(line); found != "" {
					t.Errorf("%s:%d: got %q: %s", f.path, i+1, found, forbidden.why)
				}
			}
		}
	}
}

// described holds each package but the parts of the demo and of the integration
// tests, of which the whole is described.
func described(folder string) bool {
	return folder != "." && !strings.HasPrefix(folder, "cmd/examples/") && !strings.HasPrefix(folder, "internal/integration")
}

func TestTheDocumentOfTheArchitectureNamesEachPackage(t *testing.T) {
	t.Parallel()
	var document string
	for _, f := range tree(t) {
		if f.path == "docs/architecture.md" {
			document = f.text
		}
	}
	seen := 0
	for _, f := range goFiles(t) {
		if f.ast.Doc == nil || !described(f.folder()) {
			continue
		}
		seen++
		if name := strings.TrimPrefix(f.folder(), "internal/"); !strings.Contains(document, "`"+name+"`") && !strings.Contains(document, "`"+path.Base(name)+"`") {
			t.Errorf("docs/architecture.md: got nothing about the package %s, want what it is", f.folder())
		}
	}
	if seen < 20 {
		t.Errorf("got %d packages, want all of them", seen)
	}
}
