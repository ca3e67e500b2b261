package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments/supervise"
	"github.com/semel-dev/semel/internal/assert"
)

// childVariable makes this test program a child of the kind it names.
const childVariable = "SEMEL_TEST_CHILD"

func TestMain(m *testing.M) {
	kind := os.Getenv(childVariable)
	if kind == "" {
		os.Exit(m.Run())
	}
	listen := strings.TrimPrefix(os.Args[len(os.Args)-1], "--listen=")
	fmt.Fprintf(os.Stderr, "child %s\n", kind)
	if kind == "waits" {
		for _, what := range []string{"the tide", "the tide", "the wind,\nand the moon"} {
			supervise.SayWaits(os.Stdout, what)
		}
	}
	switch {
	case kind == "lives", kind == "waits", kind == "lives once" && strings.HasSuffix(listen, ":0"):
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) })
		if err := supervise.Serve(supervise.Until(context.Background(), os.Stdin), listen, handler, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case kind == "talks":
		fmt.Println("hello")
	default:
		fmt.Fprintln(os.Stderr, "no room at the inn")
		os.Exit(1)
	}
}

// process is one under test, with what it has said.
type process struct {
	*supervise.Process
	mu     sync.Mutex
	lines  []string
	events []string
}

func (p *process) said() (lines, events []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines), slices.Clone(p.events)
}

func newProcess(t *testing.T, kind string) *process {
	t.Helper()
	program, err := os.Executable()
	assert.NoError(t, err)
	p := &process{}
	note := func(list *[]string) func(string) {
		return func(s string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			*list = append(*list, s)
		}
	}
	p.Process, err = supervise.New(supervise.Config{
		Name:  "child",
		Path:  "/usr/bin/env",
		Args:  func(context.Context) ([]string, error) { return []string{childVariable + "=" + kind, program}, nil },
		Line:  note(&p.lines),
		Event: note(&p.events),
	})
	assert.NoError(t, err)
	return p
}

// start runs p until the test ends, or stop is called, which returns what Run
// did.
func (p *process) start(t *testing.T) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { stop() })
	return stop
}

// soon bounds what takes a real process some time.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// ask asks the child for its process id, over Dial. A child that is just dying
// does not answer.
func (p *process) ask(t *testing.T) string {
	t.Helper()
	conn, err := p.Dial(soon(t))
	assert.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
	reply, err := io.ReadAll(conn)
	if err != nil {
		return ""
	}
	_, body, _ := strings.Cut(string(reply), "\r\n\r\n")
	return body
}

func TestWhatAProcessCannotDoWithoutIsAskedForByName(t *testing.T) {
	t.Parallel()
	whole := supervise.Config{Name: "bank", Path: "/bin/true", Args: func(context.Context) ([]string, error) { return nil, nil }}
	_, err := supervise.New(whole)
	assert.NoError(t, err)
	for want, leave := range map[string]func(*supervise.Config){
		"Config.Name is required":             func(c *supervise.Config) { c.Name = "" },
		"Config.Path of the bank is required": func(c *supervise.Config) { c.Path = "" },
		"Config.Args of the bank is required": func(c *supervise.Config) { c.Args = nil },
	} {
		cfg := whole
		leave(&cfg)
		_, err := supervise.New(cfg)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "got %v, want %s", err, want)
	}
}

func TestAChildThatIsKilledIsStartedAgainAtTheSameAddress(t *testing.T) {
	t.Parallel()
	p := newProcess(t, "lives")
	p.start(t)
	address, err := p.Wait(soon(t))
	assert.NoError(t, err)
	first := p.ask(t)
	for range 3 {
		child, err := os.FindProcess(p.PID())
		assert.NoError(t, err)
		assert.NoError(t, child.Kill())
		child.Release()
		next := p.ask(t)
		for deadline := soon(t); next == "" || next == first; next = p.ask(t) {
			assert.NoError(t, deadline.Err())
		}
		first = next
		again, err := p.Wait(soon(t))
		assert.NoError(t, err)
		assert.Equal(t, again, address)
	}
	_, events := p.said()
	assert.Contains(t, strings.Join(events, "\n"), "ended: signal: killed")
}

func TestAChildEndsWithItsSupervision(t *testing.T) {
	t.Parallel()
	p := newProcess(t, "lives")
	stop := p.start(t)
	_, err := p.Wait(soon(t))
	assert.NoError(t, err)
	assert.NoError(t, stop())
	assert.Equal(t, p.PID(), 0)
	lines, _ := p.said()
	assert.Equal(t, lines, []string{"child lives"})
}

func TestAChildThatNeverComesUpIsAnErrorWithItsLastWords(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"dies":  `the child could not be started: it ended before it was ready; its last words: "no room at the inn"`,
		"talks": `it said "hello" instead of where it listens`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			err := newProcess(t, kind).Run(soon(t))
			if err == nil {
				t.Fatal("got no error, want one")
			}
			assert.Contains(t, err.Error(), want)
		})
	}
}

func TestAChildThatCannotComeUpAgainIsGivenUpAfterSeveralTries(t *testing.T) {
	t.Parallel()
	p := newProcess(t, "lives once")
	ended := make(chan error, 1)
	go func() { ended <- p.Run(t.Context()) }()
	_, err := p.Wait(soon(t))
	assert.NoError(t, err)
	child, err := os.FindProcess(p.PID())
	assert.NoError(t, err)
	assert.NoError(t, child.Kill())
	select {
	case err = <-ended:
	case <-soon(t).Done():
		t.Fatal("the process is still tried")
	}
	if err == nil {
		t.Fatal("got no error, want one")
	}
	assert.Contains(t, err.Error(), "no room at the inn")
	lines, _ := p.said()
	assert.Equal(t, slices.Index(lines, "child lives once"), 0)
	assert.Equal(t, len(lines), 1+2*6, "log lines of one life and six tries")
}

func TestAChildSaysOnceForWhatItWaits(t *testing.T) {
	t.Parallel()
	p := newProcess(t, "waits")
	p.start(t)
	_, err := p.Wait(soon(t))
	assert.NoError(t, err)
	_, events := p.said()
	up := fmt.Sprintf("the child (process %d) ", p.PID())
	assert.Equal(t, events, []string{up + "waits for the tide", up + "waits for the wind, and the moon", up + "is up"})
}

func TestAChildIsToldInItsEnvironmentWhatNobodyElseIsToSee(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	assert.NoError(t, err)
	lines := make(chan string, 10)
	p, err := supervise.New(supervise.Config{
		Name: "child",
		Path: self,
		Args: func(context.Context) ([]string, error) { return nil, nil },
		Env:  []string{childVariable + "=lives"},
		Line: func(line string) { lines <- line },
	})
	assert.NoError(t, err)
	(&process{Process: p}).start(t)
	_, err = p.Wait(soon(t))
	assert.NoError(t, err)
	assert.Equal(t, <-lines, "child lives")
}

func TestAProgramThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	p, err := supervise.New(supervise.Config{
		Name: "child",
		Path: "/does/not/exist",
		Args: func(context.Context) ([]string, error) { return nil, nil },
	})
	assert.NoError(t, err)
	assert.ErrorIs(t, p.Run(t.Context()), os.ErrNotExist)
}

func TestWaitingForAChildEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	_, err := newProcess(t, "lives").Dial(ctx)
	assert.ErrorIs(t, err, why)
}
