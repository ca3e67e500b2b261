package docstest

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

const root = "../.."

// document is one Markdown file: its path from the root, and its text.
type document struct {
	path string
	text string
}

// block is one fenced piece of a document.
type block struct {
	language string
	text     string
}

// files returns the paths from the root of all files with an extension.
func files(t *testing.T, extension string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a test of another package tidied up meanwhile
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.Type().IsRegular() && filepath.Ext(name) == extension:
			rel, err := filepath.Rel(root, name)
			paths = append(paths, rel)
			return err
		}
		return nil
	})
	assert.NoError(t, err)
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	assert.NoError(t, err)
	return string(text)
}

func documents(t *testing.T) []document {
	t.Helper()
	var all []document
	for _, path := range files(t, ".md") {
		all = append(all, document{path: path, text: read(t, path)})
	}
	return all
}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)[^\n]*\n(.*?)^```")

// blocks returns the fenced pieces in one of the languages.
func (d document) blocks(languages ...string) []block {
	var found []block
	for _, m := range fence.FindAllStringSubmatch(d.text, -1) {
		for _, language := range languages {
			if m[1] == language {
				found = append(found, block{language: m[1], text: m[2]})
			}
		}
	}
	return found
}

// prose is the document without its fenced pieces.
func (d document) prose() string { return fence.ReplaceAllString(d.text, "") }

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notSlug = regexp.MustCompile(`[^a-z0-9 _-]`)
	anchor  = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
)

// anchors returns the fragments that a link may have into the document.
func (d document) anchors() map[string]bool {
	names := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(d.prose(), -1) {
		slug := notSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		names[strings.ReplaceAll(slug, " ", "-")] = true
	}
	for _, m := range anchor.FindAllStringSubmatch(d.text, -1) {
		names[m[1]] = true
	}
	return names
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	byPath := make(map[string]document)
	for _, d := range documents(t) {
		byPath[d.path] = d
	}
	for _, d := range byPath {
		for _, m := range link.FindAllStringSubmatch(d.prose(), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, fragment, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(d.path), path)
			if path == "" {
				target = d.path
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", d.path, m[1])
				continue
			}
			if to, ok := byPath[target]; ok && fragment != "" && !to.anchors()[fragment] {
				t.Errorf("%s: the link %s leads to no heading", d.path, m[1])
			}
		}
	}
}

// What a document shows is tried: go is built or found in a file, sh is looked
// up, console is typed, sql is asked of a database, yaml is given to the command,
// html is opened in a browser, and the rest has to be what it says it is. A block without a language is a picture.
func TestEveryBlockIsTried(t *testing.T) {
	t.Parallel()
	tried := map[string]func(text string) error{
		"":        func(string) error { return nil },
		"go":      func(string) error { return nil }, // in programs_test.go
		"sh":      func(string) error { return nil }, // in commands_test.go
		"console": func(string) error { return nil }, // in sessions_test.go
		"sql":     func(string) error { return nil }, // in internal/integration
		"yaml":    func(string) error { return nil }, // in cmd/semel
		"html":    func(string) error { return nil }, // in internal/integration
		"json":    isJSON,
		"http":    isRequest,
	}
	for _, d := range documents(t) {
		for _, m := range fence.FindAllStringSubmatch(d.text, -1) {
			try, ok := tried[m[1]]
			if !ok {
				t.Errorf("%s: nothing tries a block of %q", d.path, m[1])
				continue
			}
			assert.NoError(t, try(m[2]), "%s: a block of %s", d.path, m[1])
		}
	}
}

// isJSON takes {...} for an object that was left out.
func isJSON(text string) error {
	var v any
	return json.Unmarshal([]byte(strings.ReplaceAll(text, "{...}", "{}")), &v)
}

func isRequest(text string) error {
	_, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text))) //nolint:bodyclose // it is a string.
	return err
}

func TestTheReadmeIsShortAndStartsWithACommand(t *testing.T) {
	t.Parallel()
	lines := strings.Split(read(t, "README.md"), "\n")
	assert.True(t, len(lines) < 250, "README.md has %d lines, and should have less than 250", len(lines))
	screen := strings.Join(lines[:min(len(lines), 30)], "\n")
	assert.Contains(t, screen, "\ngo run ./cmd/semel demo\n", "the first screen")
	assert.Contains(t, screen, "\nmake test\n", "the first screen")
}

var (
	namedTest    = regexp.MustCompile("`((?:Test|Fuzz|Example)[A-Z][A-Za-z0-9_]*)")
	namedChapter = regexp.MustCompile("`storetest/([^`]+)`")
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)[A-Z][A-Za-z0-9_]*)\(`)
)

func TestTestsNamedAsProofExist(t *testing.T) {
	t.Parallel()
	declared := make(map[string]bool)
	var source strings.Builder
	for _, path := range files(t, ".go") {
		text := read(t, path)
		if strings.HasPrefix(path, "storetest/") {
			source.WriteString(text)
		}
		for _, m := range declaredTest.FindAllStringSubmatch(text, -1) {
			declared[m[1]] = true
		}
	}
	chapters := source.String()
	for _, d := range documents(t) {
		for _, m := range namedChapter.FindAllStringSubmatch(d.prose(), -1) {
			if !strings.Contains(chapters, "{name: "+strconv.Quote(m[1])+", rules: ") {
				t.Errorf("%s: names the chapter %q of storetest, which does not exist", d.path, m[1])
			}
		}
		for _, m := range namedTest.FindAllStringSubmatch(d.prose(), -1) {
			if !declared[m[1]] {
				t.Errorf("%s: names %s, which does not exist", d.path, m[1])
			}
		}
	}
}

var (
	citedRule   = regexp.MustCompile(`\b[RM][1-9][0-9]?\b`)
	explained   = regexp.MustCompile(`(?m)^\| ([RM][0-9]+) \|`)
	goComment   = regexp.MustCompile(`(?m)//.*$`)
	rulesInDocs = "docs/rules.md"
)

func TestRulesCitedInCommentsAreExplained(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for _, m := range explained.FindAllStringSubmatch(read(t, rulesInDocs), -1) {
		known[m[1]] = true
	}
	for _, path := range files(t, ".go") {
		for _, comment := range goComment.FindAllString(read(t, path), -1) {
			for _, number := range citedRule.FindAllString(comment, -1) {
				if !known[number] {
					t.Errorf("%s: cites %s, which %s does not explain", path, number, rulesInDocs)
				}
			}
		}
	}
}
