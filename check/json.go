package check

import (
	"encoding/json"
	"net/http"
)

// The report as JSON. Durations are in milliseconds; bodies are text, with what
// is no UTF-8 replaced.
type (
	jsonReport struct {
		Target  string  `json:"target"`
		Verdict Verdict `json:"verdict"`
		// Interrupted says that not all cases were run.
		Interrupted bool     `json:"interrupted"`
		Because     []string `json:"because"`
		// Run is what was asked for: all when it is empty.
		Run       []string `json:"run"`
		CountedBy string   `json:"countedBy,omitempty"`
		Marks     []string `json:"marks"`
		// NotLookedAt are the MUST cases that the verdict says nothing of.
		NotLookedAt []string       `json:"notLookedAt"`
		Seed        uint64         `json:"seed"`
		TookMS      int64          `json:"tookMs"`
		Counts      map[Status]int `json:"counts"`
		Findings    []jsonFinding  `json:"findings"`
	}
	jsonFinding struct {
		ID       string         `json:"id"`
		Level    Level          `json:"level"`
		Title    string         `json:"title"`
		Status   Status         `json:"status"`
		Evidence Evidence       `json:"evidence,omitempty"`
		Says     string         `json:"says"`
		How      string         `json:"how,omitempty"`
		Clause   string         `json:"clause"`
		History  []jsonExchange `json:"history,omitempty"`
	}
	jsonExchange struct {
		AfterMS     int64       `json:"afterMs"`
		TookMS      int64       `json:"tookMs"`
		AtOnce      bool        `json:"atOnce,omitempty"`
		Note        string      `json:"note,omitempty"`
		Method      string      `json:"method"`
		URL         string      `json:"url"`
		Header      http.Header `json:"header,omitempty"`
		Body        string      `json:"body,omitempty"`
		Status      int         `json:"status,omitempty"`
		ReplyHeader http.Header `json:"replyHeader,omitempty"`
		ReplyBody   string      `json:"replyBody,omitempty"`
		Error       string      `json:"error,omitempty"`
	}
)

// MarshalJSON gives the report a form for programs. What is empty is a list all the
// same.
func (r *Report) MarshalJSON() ([]byte, error) {
	out := jsonReport{
		Target: r.Target, Verdict: r.Verdict(), Interrupted: r.Interrupted != "", Because: listed(r.Because()), NotLookedAt: listed(r.NotLookedAt()), Run: listed(r.Run), CountedBy: r.CountedBy, Marks: listed(r.Marks), Seed: r.Seed,
		TookMS: r.Took.Milliseconds(), Counts: r.Counts(), Findings: []jsonFinding{},
	}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, f.json())
	}
	return json.Marshal(out)
}

func listed(lines []string) []string { return append([]string{}, lines...) }

func (f Finding) json() jsonFinding {
	out := jsonFinding{
		ID: f.Case.ID, Level: f.Case.Level, Title: f.Case.Title,
		Status: f.Status, Evidence: f.Evidence, Says: f.Says, How: f.How, Clause: f.Case.Clause,
	}
	for _, x := range f.History {
		out.History = append(out.History, jsonExchange{
			AfterMS: x.After.Milliseconds(), TookMS: x.Took.Milliseconds(), AtOnce: x.AtOnce, Note: x.Note,
			Method: x.Method, URL: x.URL, Header: x.Header, Body: string(x.Body),
			Status: x.Status, ReplyHeader: x.ReplyHeader, ReplyBody: string(x.ReplyBody), Error: x.Err,
		})
	}
	return out
}
