package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	f := func(id string, level Level, status Status, by Evidence) Finding {
		return Finding{Case: Case{ID: id, Level: level}, Status: status, Evidence: by}
	}
	sound := []Finding{
		f("replay/a", Must, Pass, Identity), f("mismatch/a", Must, Pass, Counted), f("concurrency/a", Must, Pass, Identity),
		f("header/a", Should, Warn, Bytes), f("key/a", Practice, Pass, Bytes), f("scope/a", Must, Skipped, ""), f("lost/a", Must, Inconclusive, ""),
	}
	tests := []struct {
		name string
		more []Finding
		want Verdict
		exit int
		why  string
	}{
		{"Skipped, inconclusive and warned cases leave it safe", nil, Safe, 0, ""},
		{"A failed case makes it unsafe", []Finding{f("lost/b", Must, Fail, Identity)}, Unsafe, 1, "lost/b"},
		{"A MUST that held by bytes alone is not safe", []Finding{f("lost/b", Must, Pass, Bytes)}, Untold, 3, "bytes of the replies alone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := Report{Findings: append(slices.Clip(sound), tt.more...)}
			assert.Equal(t, r.Verdict(), tt.want)
			assert.Equal(t, r.ExitCode(), tt.exit)
			assert.Contains(t, strings.Join(r.Because(), "\n"), tt.why)
		})
	}
	for i, group := range essential {
		r := Report{Findings: append(append([]Finding(nil), sound[:i]...), sound[i+1:]...)}
		assert.Equal(t, r.ExitCode(), 3, "without", group)
		assert.Contains(t, strings.Join(r.Because(), "\n"), "no MUST case of "+group)
	}
	failing := Report{Findings: []Finding{f("replay/a", Must, Fail, Identity), f("mismatch/a", Must, Fail, Bytes)}}
	assert.Equal(t, failing.Because(), []string{"replay/a: ", "mismatch/a: ", "no MUST case of concurrency could be told by identity or better"}, "what failed was told")
	empty := Report{}
	assert.Equal(t, empty.ExitCode(), 3, "a report without a finding")
	failed := Report{Setup: "nothing works"}
	assert.Equal(t, failed.Because(), []string{"nothing works"})
}

func TestWhatRunAskedForIsJudgedAlone(t *testing.T) {
	t.Parallel()
	f := func(id string, level Level, status Status) Finding {
		return Finding{Case: Case{ID: id, Level: level}, Status: status, Evidence: Counted}
	}
	for _, tt := range []struct {
		name     string
		run      []string
		findings []Finding
		want     Verdict
		exit     int
		why      string
	}{
		{"Passes of another group are no verdict on the API", []string{"lost"}, []Finding{f("lost/reply", Must, Pass), f("lost/reset", Must, Inconclusive)}, NoVerdict, 0, "of what was asked for (lost) nothing failed; without the MUST cases of replay, mismatch, concurrency nothing is said of the API as a whole"},
		{"Nor are those of an essential one alone", []string{"replay", "lost"}, []Finding{f("replay/ten", Must, Pass)}, NoVerdict, 0, "without the MUST cases of mismatch, concurrency"},
		{"A warning is no failure", []string{"replay/marked"}, []Finding{f("replay/marked", Practice, Warn)}, NoVerdict, 0, "(replay/marked) nothing failed"},
		{"A failure is one", []string{"lost"}, []Finding{f("lost/reply", Must, Fail)}, Unsafe, 1, "lost/reply: "},
		{"An essential group that was asked for must be told", []string{"replay", "lost"}, []Finding{f("lost/reply", Must, Pass), f("replay/ten", Must, Inconclusive)}, Untold, 3, "no MUST case of replay could be told"},
		{"And something at all", []string{"lost"}, []Finding{f("lost/reply", Must, Inconclusive)}, Untold, 3, "none of the cases that were asked for could be told"},
		{"Nor may bytes alone do for it", []string{"lost"}, []Finding{{Case: Case{ID: "lost/reply", Level: Must}, Status: Pass, Evidence: Bytes}}, Untold, 3, "bytes of the replies alone"},
		{"With a case of each essential group it may be safe", []string{"replay/ten", "mismatch/executes", "concurrency/2"}, []Finding{f("replay/ten", Must, Pass), f("mismatch/executes", Must, Pass), f("concurrency/2", Must, Pass)}, Safe, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := Report{Run: tt.run, Findings: tt.findings}
			assert.Equal(t, r.Verdict(), tt.want)
			assert.Equal(t, r.ExitCode(), tt.exit)
			because := r.Because()
			assert.Contains(t, strings.Join(because, "\n"), tt.why)
			if tt.want != Safe {
				assert.Equal(t, len(because), 1, because)
			}
		})
	}
}

func TestFinding(t *testing.T) {
	t.Parallel()
	tests := []struct {
		level        Level
		says         Status
		want, strict Status
	}{
		{Must, Fail, Fail, Fail},
		{Should, Fail, Warn, Fail},
		{Practice, Fail, Warn, Warn},
		{Info, Fail, Told, Told},
		{Info, Pass, Told, Told},
		{Should, Inconclusive, Inconclusive, Inconclusive},
		{Must, Skipped, Skipped, Skipped},
	}
	for _, tt := range tests {
		o := outcome{status: tt.says}
		assert.Equal(t, o.finding(Case{Level: tt.level}, false).Status, tt.want, tt.level, tt.says)
		assert.Equal(t, o.finding(Case{Level: tt.level}, true).Status, tt.strict, tt.level, tt.says, "strict")
	}
}

func TestEachCaseSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, c := range Cases() {
		assert.True(t, !seen[c.ID], c.ID, "is there once")
		seen[c.ID] = true
		for _, text := range []string{c.Title, c.Sends, c.Expects, c.Clause, c.Costs, c.Fix} {
			assert.True(t, text != "", c.ID, "has all its texts")
		}
	}
	assert.True(t, len(seen) >= 40, "cases:", len(seen))
}
