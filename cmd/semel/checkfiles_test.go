package main

import (
	"encoding/json"
	"encoding/xml"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel/check/brokentest"
	"github.com/semel-dev/semel/internal/assert"
)

// write writes a file of a test, with the server's address in it.
func write(t *testing.T, name, address, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	assert.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "HOST", address)), 0o600))
	return path
}

func serveBroken(t *testing.T, m brokentest.Mistake) string {
	t.Helper()
	srv := httptest.NewServer(brokentest.New(m))
	t.Cleanup(srv.Close)
	return srv.URL
}

const twoOperations = `
operations:
  - url: HOST/orders
    header: ["Authorization: Bearer good"]
    data: '{"amount":2500}'
    run: [replay/executes, mismatch/executes, concurrency/2]
  - url: HOST/orders
    data: '{"amount":7}'
    auth-command: "echo 'Authorization: Bearer good'"
    run: [replay/ten]
    skip: ["replay/ten=it takes long"]
`

func TestCheckReadsOperationsFromAFile(t *testing.T) {
	t.Parallel()
	address := serveBroken(t, brokentest.None)
	file := write(t, "semel-check.yaml", address, twoOperations)
	code, stdout, stderr := runHere(t, "check", "--config", file, "--json")
	assert.Equal(t, code, 3, stderr) // the second tells nothing
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	assert.Equal(t, len(lines), 2)
	assert.Contains(t, lines[0], `"verdict":"safe"`)
	assert.Contains(t, lines[1], "it takes long")
	assert.Contains(t, lines[1], `"marks":["/id","Location"],"notLookedAt":["replay/ten"]`)
	assert.Contains(t, lines[0], `"because":[],`)
	_, stdout, _ = runHere(t, "check", "--config", file)
	_, verdicts, _ := strings.Cut(stdout, "\n2 operations:\n")
	assert.Equal(t, verdicts, "  POST "+address+"/orders: safe\n  POST "+address+"/orders: could not be told\n")
	for says, text := range map[string]string{
		"unknown field":                         "operations: [{url: HOST, dat: x}]",
		"operation 1: --skip must be":           "operations: [{url: HOST, skip: [replay]}]",
		"lists no operations":                   "operations: []",
		"it is empty":                           "",
		"must be an http or https address with": "operations: [{data: '{}'}]",
	} {
		code, _, stderr := runHere(t, "check", "--config", write(t, "bad.yaml", "http://127.0.0.1:1", text))
		assert.Equal(t, code, exitUsage, text)
		assert.Contains(t, stderr, says)
	}
}

const openAPI = `openapi: 3.1.0
info: {title: Orders, version: "1"}
paths:
  /effects:
    get: {responses: {"200": {description: ok}}}
  /orders:
    post:
      parameters:
        - {name: idempotency-key, in: header, schema: {type: string}}
      requestBody:
        content:
          application/json:
            example: {amount: 2500, currency: USD}
      responses: {"201": {description: placed}}
`

func TestCheckPicksOperationsFromOpenAPIAndReportsInFormatsOfOthers(t *testing.T) {
	t.Parallel()
	address := serveBroken(t, brokentest.LooksFirst)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	code, stdout, stderr := runHere(t, "check", address, "--openapi", write(t, "api.yaml", "", openAPI),
		"-H", "Authorization: "+brokentest.BearerToken, "--run=replay/executes", "--run=concurrency/64", "--run=mismatch/media-type",
		"--report=json="+at("r.json"), "--report=junit="+at("r.xml"), "--report=md="+at("r.md"), "--report=sarif="+at("r.sarif"))
	assert.Equal(t, code, exitFailed, stdout, stderr)
	read := func(name string) []byte {
		text, err := os.ReadFile(at(name))
		assert.NoError(t, err)
		return text
	}
	var reports []struct{ Target, Verdict string }
	assert.NoError(t, json.Unmarshal(read("r.json"), &reports))
	assert.Equal(t, reports[0].Target, "POST "+address+"/orders")
	assert.Equal(t, reports[0].Verdict, "not safe")
	var suites struct {
		Suites []struct {
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Text string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	assert.NoError(t, xml.Unmarshal(read("r.xml"), &suites))
	assert.Equal(t, len(suites.Suites[0].Cases), 4) // the verdict and three cases
	for _, c := range suites.Suites[0].Cases {
		assert.Equal(t, c.Failure != nil, c.Name == "concurrency/64", c.Name)
	}
	assert.Contains(t, string(read("r.md")), "check-cases.md#concurrency64) | MUST | fail | identity | ")
	var sarif struct {
		Runs []struct {
			Results []struct {
				RuleID    string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	assert.NoError(t, json.Unmarshal(read("r.sarif"), &sarif))
	result := sarif.Runs[0].Results[0]
	assert.Equal(t, result.RuleID, "concurrency/64")
	assert.Equal(t, result.Locations[0].PhysicalLocation.Region.StartLine, 7)
	assert.Contains(t, result.Locations[0].PhysicalLocation.ArtifactLocation.URI, "api.yaml")
}

// TestTheMarkdownOfASafeAPISaysWhatWasNotLookedAt: it is the report that is sent on.
func TestTheMarkdownOfASafeAPISaysWhatWasNotLookedAt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.md")
	code, stdout, stderr := checked(t, brokentest.None, "--run=replay/executes", "--run=mismatch/executes", "--run=concurrency/2",
		"--run=scope/tenant", "--run=json/member-order", "-d", `{"amount":1}`, "--report=md="+path)
	assert.Equal(t, code, exitDone, stdout, stderr)
	text, err := os.ReadFile(path)
	assert.NoError(t, err)
	for _, want := range []string{
		"/orders`: safe\n",
		"\n- MUST cases that could not be looked at: scope/tenant, json/member-order\n",
		"\n5 cases, seed 1: 3 pass, 0 fail, 0 warn, 0 info, 0 inconclusive, 0 setup-failed, 2 skipped, in ",
		" Executions were told apart by /id, Location.\n",
		"\n- MUST: the draft asks for it so, or money moves twice, or a caller is given the reply to somebody else or to another request; SHOULD: ",
		"\n- counted: by what the service says of its effects; identity: ",
		"| MUST | skipped |  | your body has fewer than two members; give it two |",
	} {
		assert.Contains(t, string(text), want)
	}
}

func TestABadOpenAPIDocumentOrReportIsRefused(t *testing.T) {
	t.Parallel()
	good := write(t, "api.yaml", "", openAPI)
	replaced := func(old, by string) string { return write(t, "api.yaml", "", strings.ReplaceAll(openAPI, old, by)) }
	for _, tt := range []struct {
		says string
		args []string
	}{
		{"no operation of", []string{"http://127.0.0.1:1", "--openapi", replaced("idempotency-key", "x-request-id")}},
		{"its body has no example in JSON", []string{"http://127.0.0.1:1", "--openapi", replaced("example:", "x-example:")}},
		{"its path has parameters", []string{"http://127.0.0.1:1", "--openapi", replaced("/orders", "/orders/{id}")}},
		{"--openapi: open", []string{"http://127.0.0.1:1", "--openapi", "/does/not/exist"}},
		{"--openapi:", []string{"http://127.0.0.1:1", "--openapi", write(t, "no.yaml", "", "hello")}},
		{"--config and --openapi exclude each other", []string{"--config", good, "--openapi", good}},
		{"the addresses stand in the file of --config", []string{"http://127.0.0.1:1", "--config", good}},
		{"--report must be FORMAT=FILE, with a format of json, junit, md, sarif", []string{"http://127.0.0.1:1", "--report=pdf=x"}},
		{"needs --openapi", []string{"http://127.0.0.1:1", "--report=sarif=x"}},
	} {
		t.Run(tt.says, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runHere(t, append([]string{"check"}, tt.args...)...)
			assert.Equal(t, code, exitUsage)
			assert.Equal(t, stdout, "")
			assert.Contains(t, stderr, tt.says)
		})
	}
}

// TestTheFileInTheDocumentsIsRead gives semel check the operations that
// docs/check.md shows.
func TestTheFileInTheDocumentsIsRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/check.md")
	assert.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	shown, rest, closed := strings.Cut(rest, "```\n")
	assert.True(t, found && closed && !strings.Contains(rest, "```yaml"), "the document has one file of operations")
	refund := write(t, "refund.json", "", `{"refund":17}`)
	code, stdout, stderr := runHere(t, "check", "--dry-run", "--config", write(t, "semel-check.yaml", "", strings.Replace(shown, "@refund.json", "@"+refund, 1)))
	assert.Equal(t, code, exitDone, stderr)
	for _, want := range []string{"POST http://localhost:8080/payments\n", "POST http://localhost:8080/refunds\n", `{"refund":17}`} {
		assert.Contains(t, stdout, want)
	}
}
