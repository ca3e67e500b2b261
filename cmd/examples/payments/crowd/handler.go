package crowd

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// Handler starts a run on POST, with Settings as its body, and answers GET
// with the Report.
func (c *Crowd) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			payments.WriteJSON(w, http.StatusOK, c.Report())
		case http.MethodPost:
			if problem := c.accept(w, r); problem != nil {
				problem.Write(w)
				return
			}
			c.changed()
			payments.WriteJSON(w, http.StatusAccepted, c.Report())
		default:
			payments.NotFound(w, r)
		}
	})
}

// accept starts the run that r asks for.
func (c *Crowd) accept(w http.ResponseWriter, r *http.Request) *payments.Problem {
	if p := payments.CheckJSON(r.Header.Get("Content-Type")); p != nil {
		return p
	}
	body, problem := payments.ReadBody(w, r)
	if problem != nil {
		return problem
	}
	refuse := func(field, detail string) *payments.Problem {
		p := payments.NewProblem(http.StatusBadRequest, "crowd-invalid", detail)
		p.Field = field
		return p
	}
	s := Settings{Shoppers: DefaultShoppers, Trouble: DefaultTrouble}
	if err := json.Unmarshal(body, &s, json.RejectUnknownMembers(true)); err != nil {
		return refuse("", fmt.Sprintf(`the body must be {"seed":N,"shoppers":N,"trouble":N,"newKeys":false}: %v`, err))
	}
	if field, detail := s.check(); field != "" {
		return refuse(field, detail)
	}
	if !c.begin(s) {
		return payments.NewProblem(http.StatusConflict, "crowd-running", "a run is under way: start another when it has ended")
	}
	return nil
}
