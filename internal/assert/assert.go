// Package assert is the whole of this project's test helpers: a few checks
// that fail with what was got before what was wanted, and the only two ways in
// which a test here may be skipped: Skip, and SkipForeign for what no checkout
// has.
//
// Equal, True and Contains let the test go on, so that one run shows all that
// is wrong. NoError, ErrorIs and Eventually end it, since what follows needs
// the result.
package assert

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Equal checks that got equals want, deeply. The optional what says what was
// compared: a format and its arguments, or values.
func Equal[T any](t testing.TB, got, want T, what ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%sgot  %s\nwant %s", prefix(what), show(got), show(want))
	}
}

// True checks that got is true; what is a format and its arguments, or values.
func True(t testing.TB, got bool, what ...any) {
	t.Helper()
	if !got {
		t.Errorf("%sgot false, want true", prefix(what))
	}
}

// Contains checks that got has want in it.
func Contains(t testing.TB, got, want string, what ...any) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%sgot  %q\nwant it to contain %q", prefix(what), got, want)
	}
}

// NoError ends the test if err is not nil.
func NoError(t testing.TB, err error, what ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%sgot error %q, want none", prefix(what), err)
	}
}

// ErrorIs ends the test unless err matches target.
func ErrorIs(t testing.TB, err, target error, what ...any) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("%sgot error %v, want one that matches %q", prefix(what), err, target)
	}
}

// patience is how long Eventually waits: far longer than a slow machine needs.
const patience = 60 * time.Second

// Between two looks Eventually lets pass at first so long, and then ever more,
// so that a long wait does not take the machine's time from what it waits for.
const (
	firstPause = 5 * time.Millisecond
	mostPause  = 50 * time.Millisecond
)

// Eventually waits until is says that something has come about that a test
// cannot be told of, such as what another process does; what names it. It ends
// the test if that takes too long.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	began := time.Now()
	for pause := firstPause; !is(); pause = min(pause*5/4, mostPause) {
		if time.Since(began) > patience {
			t.Fatalf("waited %v in vain until %s", patience, what)
		}
		time.Sleep(pause)
	}
}

// RequireVariable names the environment variable that forbids skipping, with
// the value "all".
const RequireVariable = "SEMEL_TEST_REQUIRE"

// Skip skips the test because reason, something this machine lacks, or fails
// it where RequireVariable says that nothing may be missing.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv(RequireVariable) == "all" {
		t.Fatalf("%s=all, but this test cannot run: %s", RequireVariable, reason)
	}
	t.Skip(reason)
}

// SkipForeign skips the test because reason, something that is no part of this
// repository and that nobody can install: it is skipped where RequireVariable
// is set as well, since every clone of its own would fail there.
func SkipForeign(t testing.TB, reason string) {
	t.Helper()
	t.Skip(reason)
}

// LeaveToPlainRun skips the test under the race detector because reason: the
// detector would see nothing of ours there, and it makes everything slow. The
// run without it, which every check has as well, plays all tests.
// internal/testreport counts such skips by how their reason begins.
func LeaveToPlainRun(t testing.TB, reason string) {
	t.Helper()
	if RaceDetector {
		t.Skip("in the plain run: " + reason)
	}
}

// prefix writes what: as a format if it is one, with arguments for it, and else
// as the values that it is, whatever is in them.
func prefix(what []any) string {
	if len(what) == 0 {
		return ""
	}
	said := strings.TrimSuffix(fmt.Sprintln(what...), "\n")
	if format, ok := what[0].(string); ok && len(what) > 1 && strings.Contains(format, "%") {
		said = fmt.Sprintf(format, what[1:]...)
	}
	return said + ":\n"
}

func show(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case fmt.Stringer:
		return v.String()
	}
	return fmt.Sprintf("%+v", v)
}
