package js_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/js"
)

func TestAServiceServesTheModule(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("GET /semel.js", http.FileServerFS(js.Files()))
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/semel.js", nil))
	assert.Equal(t, w.Code, http.StatusOK)
	assert.Equal(t, w.Header().Get("Content-Type"), "text/javascript; charset=utf-8", "what a browser wants of a module")
	source, err := os.ReadFile("semel.js")
	assert.NoError(t, err)
	assert.True(t, bytes.Equal(w.Body.Bytes(), source), "it is not the module")
}

// told is one line in which Node says how a test ended, in TAP.
var told = regexp.MustCompile(`(?m)^(ok|not ok) [0-9]+ - (.*)$`)

// TestUnderNode runs the tests of the module under Node's own runner, so that
// they are counted with the others.
func TestUnderNode(t *testing.T) {
	t.Parallel()
	assert.LeaveToPlainRun(t, "it is no Go that is tested")
	node, err := findNode()
	if err != nil {
		assert.Skip(t, "there is no Node here (Debian: apt-get install nodejs)")
	}
	paths, err := filepath.Glob("test/*.test.js")
	assert.NoError(t, err)
	assert.True(t, len(paths) > 1, "got the tests %v, want more", paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			out, failed := exec.CommandContext(t.Context(), node, "--test-reporter=tap", path).CombinedOutput()
			tests := told.FindAllSubmatch(out, -1)
			assert.True(t, len(tests) > 0, "nothing was tested: %v\n%s", failed, out)
			for _, test := range tests {
				t.Run(string(test[2]), func(t *testing.T) {
					t.Parallel()
					assert.Equal(t, string(test[1]), "ok", "as Node says, see above")
				})
			}
			assert.NoError(t, failed, "%s", out)
		})
	}
}

// findNode returns the program, by either of its names.
func findNode() (string, error) {
	if path, err := exec.LookPath("node"); err == nil {
		return path, nil
	}
	return exec.LookPath("nodejs")
}
