package storm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
)

// The variables that say what to play: see the package comment.
const (
	longVariable = "SEMEL_LONG"
	seedVariable = "SEMEL_STORM_SEED"
	runsVariable = "SEMEL_STORM_RUNS"
)

const (
	shortRuns = 12
	longRuns  = 500
	// atOnce is how many runs are played at a time. Most of a run is waiting
	// for leases to lapse.
	atOnce = 6
	// sayEvery is how often the long form says how far it is.
	sayEvery = 5 * time.Second
)

// chosen returns the first seed and how many runs there are to be.
func chosen(t *testing.T) (first uint64, runs int, long bool) {
	t.Helper()
	first, runs = 1, shortRuns
	if long = os.Getenv(longVariable) != ""; long {
		first, runs = uint64(rand.Uint32()), longRuns
	}
	var err error
	if text := os.Getenv(seedVariable); text != "" {
		first, err = strconv.ParseUint(text, 10, 64)
		assert.NoError(t, err, seedVariable)
		runs = 1
	}
	if text := os.Getenv(runsVariable); text != "" {
		runs, err = strconv.Atoi(text)
		assert.NoError(t, err, runsVariable)
	}
	return first, runs, long
}

// built is where TestMain lets the command be put.
var built struct {
	dir  string
	once sync.Once
	err  error
}

func TestMain(m *testing.M) {
	var err error
	if built.dir, err = os.MkdirTemp("", "semel-storm-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(built.dir)
	os.Exit(code)
}

// program returns the path of the command, which it builds once.
func program(t *testing.T) string {
	t.Helper()
	assert.LeaveToPlainRun(t, "what it drives is built without the race detector")
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		assert.Skip(t, "it looks for processes in /proc")
	}
	path := filepath.Join(built.dir, "semel")
	built.once.Do(func() {
		out, err := exec.Command("go", "build", "-o", path, "github.com/semel-dev/semel/cmd/semel").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("go build: %w: %s", err, out)
		}
	})
	assert.NoError(t, built.err)
	return path
}

func TestStorm(t *testing.T) {
	t.Parallel()
	path := program(t)
	first, runs, long := chosen(t)
	say(t, fmt.Sprintf("%d runs, seeds %d to %d", runs, first, first+uint64(runs)-1))
	f := newFigures(runs)
	if long {
		defer sayOften(t, f)()
	}
	dir := t.TempDir()
	seeds := make(chan uint64)
	var players sync.WaitGroup
	for range min(atOnce, runs) {
		players.Go(func() {
			for seed := range seeds {
				f.play(t, newPlan(seed), path, filepath.Join(dir, strconv.FormatUint(seed, 10)))
			}
		})
	}
	for n := 0; n < runs && f.worthGoingOn(); n++ {
		seeds <- first + uint64(n)
	}
	close(seeds)
	players.Wait()
	say(t, f.String())
	if f.runs != runs {
		t.Errorf("%d of %d runs were played", f.runs, runs)
	}
	if missing := f.missing(); runs >= shortRuns && len(missing) > 0 {
		t.Errorf("the storm was none: in %d runs there were no %s", runs, strings.Join(missing, ", no "))
	}
}

// play plays one run and reports what was not as promised.
func (f *figures) play(t *testing.T, p plan, path, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Error(err)
		return
	}
	defer os.RemoveAll(dir)
	e, err := play(t.Context(), p, path, dir)
	if err != nil {
		t.Errorf("seed %d could not be played: %v", p.seed, err)
		f.spoil()
		return
	}
	breaches := e.judge()
	for _, b := range breaches {
		t.Errorf("%s", e.report(b))
	}
	f.add(e, len(breaches))
}

// say prints a line that internal/testreport shows at once.
func say(t *testing.T, line string) {
	t.Helper()
	fmt.Fprintln(t.Output(), "report: storm:", line)
}

// sayOften says how far the runs are, until it is told to stop.
func sayOften(t *testing.T, f *figures) (stop func()) {
	t.Helper()
	often := time.NewTicker(sayEvery)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-often.C:
				say(t, f.short())
			case <-done:
				return
			}
		}
	}()
	return func() {
		often.Stop()
		close(done)
		<-stopped
	}
}

// TestTheStormSees shows that a run is not exact where it cannot be.
func TestTheStormSees(t *testing.T) {
	t.Parallel()
	path := program(t)
	for name, change := range map[string]func(*plan){
		"a bank that does not honour keys": func(p *plan) { p.forgets = true },
		"a door with nothing before it":    func(p *plan) { p.door = "/unsafe/payments" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan{seed: 1, door: keyedDoor, services: 2}
			for n := range 3 {
				o := newOrder(p.seed, n)
				o.clients = []client{{mishaps: []mishap{{kind: killedAfterCharge}}}}
				p.orders = append(p.orders, o)
			}
			change(&p)
			e, err := play(t.Context(), p, path, t.TempDir())
			assert.NoError(t, err)
			var text strings.Builder
			for _, b := range e.judge() {
				fmt.Fprintln(&text, e.report(b))
			}
			assert.Contains(t, text.String(), "was charged 2 times, not 1")
			assert.Contains(t, text.String(), "it should be 7500 for 3 orders")
		})
	}
}
