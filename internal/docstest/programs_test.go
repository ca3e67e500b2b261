package docstest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
)

// A block of Go in a document is either a whole program, which has to build, or
// a quotation, which has to stand in a file of this repository word for word.
func TestGoInDocumentsIsAProgramOrAQuotation(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, path := range files(t, ".go") {
		source.WriteString(trimmed(read(t, path)))
	}
	quotable := source.String()
	for _, d := range documents(t) {
		for _, b := range d.blocks("go") {
			if strings.HasPrefix(b.text, "package ") {
				build(t, d.path, b.text)
			} else if !strings.Contains(quotable, trimmed(b.text)) {
				t.Errorf("%s: this is no quotation of any file here:\n%s", d.path, b.text)
			}
		}
	}
}

// trimmed is text without the spaces around its lines, and without comments at
// the top level, which a quotation leaves out.
func trimmed(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "//") {
			b.WriteString(strings.TrimSpace(line))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// build compiles a program and returns where it is.
func build(t *testing.T, document, source string) string {
	t.Helper()
	assert.LeaveToPlainRun(t, "what it drives is built without the race detector")
	dir := t.TempDir()
	file, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	assert.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, file)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: a program does not build: %v\n%s", document, err, out)
	}
	return program
}

// programAddress is where the programs in documents listen: not where the demo
// does, so that both can run.
const programAddress = "localhost:8090"

// serveProgram runs the first program of a document on a free port until the
// test ends, and returns its address.
func serveProgram(t *testing.T, path string) string {
	t.Helper()
	program, address := buildServer(t, path)
	start(t, program, address, t.TempDir())
	return address
}

// buildServer builds the first program of a document and returns where it is
// and where it will listen.
func buildServer(t *testing.T, path string) (program, address string) {
	t.Helper()
	blocks := document{text: read(t, path)}.blocks("go")
	if len(blocks) == 0 || !strings.Contains(blocks[0].text, programAddress) {
		t.Fatalf("got no program in %s that listens on %s, want one", path, programAddress)
	}
	address = freeAddress(t)
	return build(t, path, strings.ReplaceAll(blocks[0].text, programAddress, address)), address
}

// start runs a program in a folder until the test ends, and returns once it
// listens.
func start(t *testing.T, program, address, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	assert.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	waitFor(t, address)
	return cmd
}

func TestTheProgramOfTheReadmeDoesWhatItSays(t *testing.T) {
	t.Parallel()
	address := serveProgram(t, "README.md")
	first := post(t, address, "k1", `{"item":"book"}`)
	repeat := post(t, address, "k1", `{ "item": "book" }`)
	other := post(t, address, "k2", `{"item":"book"}`)
	reused := post(t, address, "k1", `{"item":"two books"}`)

	assert.Equal(t, first.status, http.StatusCreated, "the first request")
	assert.Equal(t, repeat.status, http.StatusCreated, "the repeat")
	assert.Equal(t, repeat.body, first.body, "the repeat")
	assert.Equal(t, repeat.header.Get("Idempotent-Replayed"), "true", "the repeat")
	assert.Contains(t, first.body, "order 1,", "the first request")
	assert.Contains(t, other.body, "order 2,", "another key, after a repeat that ran nothing")
	assert.Equal(t, reused.status, http.StatusUnprocessableEntity, "another request under the same key")
	assert.Equal(t, post(t, address, "", `{}`).status, http.StatusBadRequest, "a request without a key")
	rules := ask(t, http.MethodGet, address+"/.well-known/idempotency", "", "", nil)
	assert.Contains(t, rules.body, `"path": "/orders"`, "the published rules")
}

// firstPort and ports say which ports a program may get: none that a system
// gives to whoever asks for any, so that nobody gets it before the program.
const (
	firstPort = 20_000
	ports     = 12_000
)

func freeAddress(t *testing.T) string {
	t.Helper()
	var err error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			assert.NoError(t, l.Close())
			return address
		}
	}
	t.Fatalf("got no free port from %d on: %v", firstPort, err)
	return ""
}

// waitFor returns once something listens.
func waitFor(t *testing.T, address string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("nothing listens on %s: %v", address, err)
		}
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func post(t *testing.T, address, key, body string) answer {
	t.Helper()
	return ask(t, http.MethodPost, address+"/orders", key, body, nil)
}

// ask sends one request; user, if there is one, goes with it as its
// credentials.
func ask(t *testing.T, method, target, key, body string, user *url.Userinfo) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+target, strings.NewReader(body))
	assert.NoError(t, err)
	req.URL.User = user
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	assert.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	assert.NoError(t, err)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(text)}
}

func TestTheProgramOfTheFrameworksPageDoesWhatItSays(t *testing.T) {
	t.Parallel()
	address := serveProgram(t, "docs/frameworks.md")
	ann, bob := url.UserPassword("ann", "swordfish"), url.UserPassword("bob", "swordfish")
	order := func(user *url.Userinfo) answer {
		return ask(t, http.MethodPost, address+"/orders", "k1", `{"item":"book"}`, user)
	}

	assert.Equal(t, order(nil).status, http.StatusUnauthorized, "a request without credentials")
	first, repeat, other := order(ann), order(ann), order(bob)
	assert.Equal(t, first.header.Get("Semel-Outcome"), "executed", "the key after a request that was refused outside")
	assert.Equal(t, repeat.header.Get("Semel-Outcome"), "replayed", "the repeat")
	assert.Equal(t, repeat.body, first.body, "the repeat")
	assert.Contains(t, repeat.header.Get("Access-Control-Expose-Headers"), "Idempotent-Replayed", "the repeat")
	assert.Equal(t, other.header.Get("Semel-Outcome"), "executed", "the same key of somebody else")
	assert.Equal(t, order(nil).status, http.StatusUnauthorized, "a repeat without credentials")

	preflight := ask(t, http.MethodOptions, address+"/orders", "", "", nil)
	assert.Equal(t, preflight.status, http.StatusNoContent, "a preflight")
	assert.Contains(t, preflight.header.Get("Access-Control-Allow-Headers"), "Idempotency-Key", "a preflight")
	rules := ask(t, http.MethodGet, address+"/.well-known/idempotency", "", "", nil)
	assert.Contains(t, rules.body, `"path": "/orders"`, "the published rules, without credentials")
}

func TestTheProgramOfTheSQLitePageDoesWhatItSays(t *testing.T) {
	t.Parallel()
	program, address := buildServer(t, "docs/sqlite.md")
	dir := t.TempDir()
	running := start(t, program, address, dir)
	orders := func() string { return ask(t, http.MethodGet, address+"/orders", "", "", nil).body }

	first, repeat := post(t, address, "k1", `{"item":"book"}`), post(t, address, "k1", `{"item":"book"}`)
	assert.Equal(t, first.status, http.StatusCreated, "the first request")
	assert.Contains(t, first.body, "order 1", "the first request")
	assert.Equal(t, repeat.header.Get("Semel-Outcome"), "replayed", "the repeat")
	refused := post(t, address, "k2", `{}`)
	assert.Equal(t, refused.status, http.StatusUnprocessableEntity, "an order without an item")
	assert.Equal(t, post(t, address, "k2", `{}`).header.Get("Semel-Outcome"), "replayed", "the repeat of a refusal")
	rules := ask(t, http.MethodGet, address+"/.well-known/idempotency", "", "", nil)
	assert.Contains(t, rules.body, `"storeClass": "durable"`, "the published rules")

	assert.NoError(t, running.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, running.Wait(), "ended in good order")
	start(t, program, address, dir)
	again := post(t, address, "k1", `{"item":"book"}`)
	assert.Equal(t, again.header.Get("Semel-Outcome"), "replayed", "the repeat after a restart")
	assert.Equal(t, again.body, first.body, "the repeat after a restart")
	assert.Equal(t, orders(), `["book"]`+"\n", "orders")
}

const ownModule = "github.com/semel-dev/semel"

var (
	// replaceLine points a program to one of the modules here, which have no
	// release that "go get" would find.
	replaceLine = regexp.MustCompile(`(?m)^go mod edit -replace (\S+)=\.\./semel(\S*)(?: .*)?$`)
	ownImport   = regexp.MustCompile(`"(github\.com/semel-dev/semel[^"]*)"`)
)

// A page that says how to get the modules of its programs points to each module
// of Semel that they import, where it is.
func TestEachModuleOfSemelThatAProgramImportsIsPointedTo(t *testing.T) {
	t.Parallel()
	modules := make(map[string]string) // path to folder
	for _, path := range files(t, ".mod") {
		name, ok := strings.CutPrefix(strings.SplitN(read(t, path), "\n", 2)[0], "module ")
		assert.True(t, ok, "%s begins with its module", path)
		modules[name] = strings.TrimPrefix(filepath.Join("/", filepath.Dir(path)), "/")
	}
	pages := 0
	for _, d := range documents(t) {
		pointed := make(map[string]bool)
		for _, b := range d.blocks("sh") {
			assert.True(t, !strings.Contains(b.text, "go get "+ownModule), "%s gets a module that has no release", d.path)
			for _, m := range replaceLine.FindAllStringSubmatch(b.text, -1) {
				folder, ok := modules[m[1]]
				assert.True(t, ok && "/"+folder == "/"+strings.TrimPrefix(m[2], "/"), "%s: %s", d.path, m[0])
				pointed[m[1]] = true
			}
		}
		if len(pointed) == 0 {
			continue // it leaves that to another page
		}
		pages++
		for _, b := range d.blocks("go") {
			if !strings.HasPrefix(b.text, "package ") {
				continue
			}
			for _, m := range ownImport.FindAllStringSubmatch(b.text, -1) {
				of := m[1]
				for modules[of] == "" && of != ownModule {
					of = path.Dir(of)
				}
				assert.True(t, pointed[of], "%s does not point to %s, which a program imports", d.path, of)
			}
		}
	}
	assert.True(t, pages >= 3, "pages that say how to get the modules: %d", pages)
}
