package semelclient_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
)

// outcomes are the cases that js/semel.js is held against as well, in
// js/test/outcomes.test.js: the two clients make the same of every answer.
type outcomes struct {
	// Answers is what each answer means as the first of an intent, and what it
	// means after an attempt that was lost.
	Answers []struct {
		Name   string
		Answer given
		// First is the outcome if it is the first answer, After that if an
		// attempt was lost before it; Tries is how many requests the former
		// takes, when the service answers the same for ever, and 0 many.
		First, After string
		Tries        int
		Reason       semelclient.Reason
		// Hidden: a browser shows no script what it is.
		Hidden bool
	}
	// Courses are what several answers mean, the last one again and again.
	Courses []struct {
		Name     string
		Answers  []given
		Outcome  string
		Reason   semelclient.Reason
		Tries    int
		Replayed bool
	}
	// Waits is what Retry-After asks for, in seconds.
	Waits []struct {
		Name       string
		RetryAfter []string
		Date       string
		Wait       int64
	}
	// Rules say whether an intent of an age, in seconds, whose first attempt
	// was lost, is sent once more under the rules that a service publishes, and
	// whether they are asked for.
	Rules []struct {
		Name        string
		Status      int
		Document    string
		Age         int64
		Sent, Asked bool
	}
}

// given is one answer of the cases, or that there is none.
type given struct {
	Lost    bool
	Status  int
	Headers map[string]string
	Body    *string
}

func (g given) answer() answer {
	if g.Lost {
		return lost
	}
	var headers []string
	for name, value := range g.Headers {
		headers = append(headers, name, value)
	}
	if g.Body != nil {
		headers = append(headers, "body", *g.Body)
	}
	return status(g.Status, headers...)
}

func readOutcomes(t *testing.T) outcomes {
	t.Helper()
	text, err := os.ReadFile("testdata/outcomes.json")
	assert.NoError(t, err)
	var o outcomes
	assert.NoError(t, json.Unmarshal(text, &o))
	assert.True(t, len(o.Answers) > 50 && len(o.Courses) > 5 && len(o.Waits) > 10 && len(o.Rules) > 10, "cases are missing")
	return o
}

// saying is an outcome as js/semel.js spells it.
func saying(o semelclient.Outcome) string {
	if o == semelclient.NotApplied {
		return "not-applied"
	}
	return o.String()
}

// The table of docs/client.md.
func TestAnAnswerSaysWhatItSays(t *testing.T) {
	t.Parallel()
	for _, tt := range readOutcomes(t).Answers {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := playing(tt.Answer.answer())
				client, store := newClient(t, s)
				r := pay(t, client)
				assert.Equal(t, saying(r.Outcome), tt.First)
				assert.Equal(t, r.Reason, tt.Reason)
				assert.Equal(t, r.Attempts, len(s.requests()), "attempts")
				if tt.Tries > 0 {
					assert.Equal(t, r.Attempts, tt.Tries, "requests")
				} else {
					assert.True(t, r.Attempts > 3, "it is tried again: %d", r.Attempts)
					assert.ErrorIs(t, r.Err, semelclient.ErrGaveUp)
				}
				same(t, s.requests())
				assert.Equal(t, stored(t, store), 1, "it stays until it is forgotten")

				s = playing(lost, tt.Answer.answer())
				client, _ = newClient(t, s)
				r = pay(t, client)
				assert.Equal(t, saying(r.Outcome), tt.After, "after a lost attempt")
				same(t, s.requests())
			})
		})
	}
}

func TestSeveralAnswersSayWhatTheySay(t *testing.T) {
	t.Parallel()
	for _, tt := range readOutcomes(t).Courses {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := playing()
				for _, g := range tt.Answers {
					s.answers = append(s.answers, g.answer())
				}
				client, _ := newClient(t, s)
				r := pay(t, client)
				assert.Equal(t, saying(r.Outcome), tt.Outcome)
				assert.Equal(t, r.Reason, tt.Reason)
				assert.Equal(t, r.Attempts, tt.Tries, "attempts")
				assert.Equal(t, r.Replayed, tt.Replayed)
				same(t, s.requests())
			})
		})
	}
}

func TestRetryAfterAsksForWhatItAsksFor(t *testing.T) {
	t.Parallel()
	for _, tt := range readOutcomes(t).Waits {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := playing(func(req *http.Request) (*http.Response, error) {
					resp, err := status(http.StatusServiceUnavailable)(req)
					resp.Header["Retry-After"] = tt.RetryAfter
					resp.Header.Del("Date")
					if tt.Date != "" {
						resp.Header.Set("Date", tt.Date)
					}
					return resp, err
				}, status(http.StatusCreated))
				client, _ := newClient(t, s)
				assert.Equal(t, pay(t, client).Outcome, semelclient.Applied)
				got := s.requests()
				wait, want := got[1].at.Sub(got[0].at), time.Duration(tt.Wait)*time.Second
				assert.True(t, wait >= want && wait <= want+time.Second, "waited %v, and a second of jitter is the most", wait)
			})
		})
	}
}

func TestExpiryPolicy(t *testing.T) {
	t.Parallel()
	for _, tt := range readOutcomes(t).Rules {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := playing(lost)
				s.rules = status(tt.Status, "Content-Type", "application/json", "body", tt.Document)
				client, _ := newClient(t, s, func(c *semelclient.Config) { c.Policy.MaxAttempts = 1 })
				in := intend(t, client)
				client.Do(t.Context(), in)
				time.Sleep(time.Duration(tt.Age) * time.Second)
				s.answers = []answer{status(http.StatusCreated)}
				r := client.Do(t.Context(), in)
				assert.Equal(t, s.asked > 0, tt.Asked, "the rules are asked for")
				if tt.Sent {
					assert.Equal(t, r.Outcome, semelclient.Applied)
					return
				}
				assert.Equal(t, r.Outcome, semelclient.Unknown)
				assert.Equal(t, r.Attempts, 0)
				assert.Equal(t, len(s.requests()), 1, "it is not sent blind")
			})
		})
	}
}

// row is one of the table of docs/problems.md: code, status, retry, Retry-After,
// Semel-Outcome.
var row = regexp.MustCompile("(?m)^\\| \\[`([a-z-]+)`\\][^|]*\\| ([0-9]+) \\| (yes|no) \\| [^|]* \\| ([a-z -]+) \\|$")

func TestAProblemOfSemelsSaysWithoutItsHeaderNoMoreThanWithIt(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../docs/problems.md")
	assert.NoError(t, err)
	rows := row.FindAllStringSubmatch(string(document), -1)
	assert.True(t, len(rows) > 20, "got %d rows, want all", len(rows))
	for _, r := range rows {
		code, number, retry, said := r[1], r[2], r[3] == "yes", strings.Split(r[4], " or ")
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, err := strconv.Atoi(number)
				assert.NoError(t, err)
				client, _ := newClient(t, playing(problem(n, "", code, retry)))
				bare := pay(t, client).Outcome
				for _, outcome := range said {
					client, _ := newClient(t, playing(problem(n, outcome, code, retry)))
					whole := pay(t, client).Outcome
					assert.True(t, bare == whole || bare == semelclient.Unknown, "%v without the header, %v with %s", bare, whole, outcome)
				}
			})
		})
	}
}
