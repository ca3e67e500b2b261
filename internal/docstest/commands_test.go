package docstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// elsewhere are programs that a document may use and that are not ours to
// check.
var elsewhere = map[string]bool{"curl": true, "git": true, "apt-get": true, "cd": true, "mkdir": true, "sqlite3": true}

func TestPrintedCommandsExist(t *testing.T) {
	t.Parallel()
	for _, d := range documents(t) {
		for _, b := range d.blocks("sh") {
			for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
				line, _, _ = strings.Cut(line, " #")
				if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
					checkCommand(t, d.path, words)
				}
			}
		}
	}
}

func checkCommand(t *testing.T, document string, words []string) {
	t.Helper()
	wrong := func(why string) { t.Errorf("%s: %q: %s", document, strings.Join(words, " "), why) }
	for len(words) > 0 && strings.Contains(words[0], "=") {
		words = words[1:] // an environment variable
	}
	switch {
	case len(words) == 0, elsewhere[words[0]]:
	case words[0] == "make":
		for _, target := range words[1:] {
			if !strings.Contains(target, "=") && !makeTargets(t)[target] {
				wrong("the Makefile has no target " + target)
			}
		}
	case words[0] == "go":
		checkGo(t, words[1:], wrong)
	case words[0] == "semel":
		checkSemel(t, words[1:], wrong)
	case strings.HasPrefix(words[0], "."):
		if info, err := os.Stat(filepath.Join(root, words[0])); err != nil || info.Mode()&0o111 == 0 {
			wrong("there is no such program")
		}
	default:
		wrong("this test does not know the program " + words[0])
	}
}

var makeTarget = regexp.MustCompile(`(?m)^([a-z]+):`)

func makeTargets(t *testing.T) map[string]bool {
	t.Helper()
	targets := make(map[string]bool)
	for _, m := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	return targets
}

// checkGo looks up the folders that a go command names, and the arguments of
// "go run ./cmd/semel".
func checkGo(t *testing.T, args []string, wrong func(string)) {
	t.Helper()
	for i, arg := range args {
		if !strings.HasPrefix(arg, "./") {
			continue
		}
		folder := strings.TrimSuffix(arg, "...")
		if info, err := os.Stat(filepath.Join(root, folder)); err != nil || !info.IsDir() {
			wrong("there is no folder " + arg)
			return
		}
		if args[0] == "run" && arg == "./cmd/semel" {
			checkSemel(t, args[i+1:], wrong)
			return
		}
	}
}

// checkSemel asks the command for help on what a document tells a reader to
// type, and looks the flags up there.
func checkSemel(t *testing.T, args []string, wrong func(string)) {
	t.Helper()
	var command, flags []string
	for _, arg := range args {
		if name, ok := strings.CutPrefix(arg, "--"); ok {
			name, _, _ = strings.Cut(name, "=")
			flags = append(flags, "--"+name)
		} else if len(flags) == 0 {
			command = append(command, arg)
		}
	}
	run := append([]string{"run", "./cmd/semel"}, command...)
	cmd := exec.CommandContext(t.Context(), "go", append(run, "--help")...)
	cmd.Dir = root
	help, err := cmd.CombinedOutput()
	if err != nil {
		wrong("asking for help gives an error: " + string(help))
		return
	}
	if want := strings.Join(append([]string{"semel"}, command...), " "); !strings.Contains(string(help), want+" ") {
		wrong("there is no command " + want) // help on an unknown one is that of its parent
	}
	for _, flag := range flags {
		if !regexp.MustCompile(flag + `\b`).Match(help) {
			wrong("there is no flag " + flag)
		}
	}
}
