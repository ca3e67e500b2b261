package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	const (
		passes = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"a quiet line\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":0.5}
`
		skips = `{"Action":"output","Package":"q","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"q","Test":"TestB","Output":"    b_test.go:7: no chromium\n"}
{"Action":"output","Package":"q","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"q","Test":"TestB"}
{"Action":"pass","Package":"q","Elapsed":0.1}
`
		left = `{"Action":"output","Package":"p","Test":"TestF","Output":"    f_test.go:7: in the plain run: nothing to see\n"}
{"Action":"skip","Package":"p","Test":"TestF"}
`
		fails = `{"Action":"output","Package":"r","Test":"TestC","Output":"    c_test.go:9: got 2, want 1\n"}
{"Action":"fail","Package":"r","Test":"TestC"}
{"Action":"output","Package":"r","Output":"FAIL\n"}
{"Action":"output","Package":"r","Output":"FAIL\tr\t0.200s\n"}
{"Action":"fail","Package":"r","Elapsed":0.2}
`
		panics = `{"Action":"output","Package":"s","Test":"TestE","Output":"=== PAUSE TestE\n"}
{"Action":"output","Package":"s","Test":"TestD","Output":"panic: out of luck\n"}
{"Action":"fail","Package":"s","Elapsed":0.2}
`
		doesNotBuild = `{"ImportPath":"u","Action":"build-output","Output":"u.go:3: undefined: x\n"}
{"ImportPath":"u","Action":"build-fail"}
{"Action":"fail","Package":"u","Elapsed":0,"FailedBuild":"u"}
`
	)
	for _, c := range []struct {
		name string
		in   string
		code int
		want []string
		not  string
	}{
		{"a pass is one line, and its output is left out", passes, 0, []string{"ok    p  0.5s\n", "1 passed, 0 failed, 0 skipped\n"}, "quiet"},
		{"a skip is named with its reason in the last lines", passes + skips, 0, []string{"skipped:\n  q TestB: b_test.go:7: no chromium\n\n1 passed, 0 failed, 1 skipped\n"}, "==="},
		{"what is left to the plain run is counted", left + passes, 0, []string{"\n1 passed, 0 failed, 0 skipped, 1 left to the plain run\n"}, "skipped:"},
		{"a failure is printed whole, and its package named once", passes + fails, 1, []string{"got 2, want 1\nFAIL  r  0.2s\n", "1 passed, 1 failed, 0 skipped\n"}, "quiet"},
		{"a panic is printed although its test never ended", passes + panics, 1, []string{"panic: out of luck\n", "FAIL  s  0.2s\n"}, "TestE"},
		{"a package that does not build fails", passes + doesNotBuild, 1, []string{"u.go:3: undefined: x\n", "FAIL  u  0.0s\n"}, "quiet"},
		{"words of the go command itself are passed on", passes + "go: no such pattern\n", 0, []string{"go: no such pattern\n"}, "quiet"},
		{"nothing but skips is no success", skips, 1, []string{"0 passed, 0 failed, 1 skipped\n"}, "==="},
		{"no test at all is no success", "", 1, []string{"0 passed, 0 failed, 0 skipped\n"}, "skipped:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if code := run(strings.NewReader(c.in), &out); code != c.code {
				t.Errorf("got exit code %d, want %d", code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("got\n%s\nwant in it %q", out.String(), want)
				}
			}
			if strings.Contains(out.String(), c.not) {
				t.Errorf("got\n%s\nwant no %q in it", out.String(), c.not)
			}
		})
	}
}
