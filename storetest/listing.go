package storetest

import (
	"slices"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var listChapters = []chapter{
	{name: "List", rules: slices.Concat(
		needing(Listing, inEach("it finds, with all but the reply, a record", situations, listFinds)),
		[]rule{
			{name: "it finds those of the states asked for alone", needs: Listing, test: listStates},
			{name: "it finds those of the scope asked for alone, as bytes (R11)", needs: Listing, test: listScope},
			{name: "the oldest come first, by the first start", needs: Listing, test: listOldestFirst},
			{name: "it leaves out what is younger than asked for, on the store's clock", needs: Listing, test: listOlderThan},
			{name: "pages meet each record once, whatever its scope and key", needs: Listing, test: listPages},
			{name: "a page has at most limit records, and none without a limit", needs: Listing, test: listLimit},
			{name: "what is expired is not listed, swept or not", needs: Listing, test: listExpired},
			{name: "a tombstone is not listed", needs: Listing, test: listTombstone},
			{name: "what is stuck is found among what is not", needs: Listing, test: listStuck},
		},
	)},
	{name: "ByOperation", rules: slices.Concat(
		needing(Listing, inEach("it reads what Get reads of a record", situations, operationAsGet)),
		[]rule{
			{name: "an expired record is found until it is swept", needs: Listing, test: operationExpired},
			{name: "an operation that nobody began is absent", needs: Listing, test: operationAbsent},
			{name: "after start over the new id finds the record, and the old one none", needs: Listing, test: operationStartedOver},
		},
	)},
}

// needing are rules that all need an ability.
func needing(a Ability, rules []rule) []rule {
	for i := range rules {
		rules[i].needs |= a
	}
	return rules
}

func (s *subject) lister() semel.Lister {
	s.Helper()
	l, ok := semel.As[semel.Lister](s.store)
	if !ok {
		s.Fatal("the store is no semel.Lister")
	}
	return l
}

func (s *subject) list(p semel.ListParams) []semel.Record {
	s.Helper()
	found, err := s.lister().List(s.Context(), p)
	assert.NoError(s, err, "List")
	return found
}

// names are the scopes and keys of records, in order.
func names(records []semel.Record) []string {
	all := make([]string, 0, len(records))
	for _, r := range records {
		all = append(all, r.Scope+"/"+r.Key)
	}
	return all
}

// wantListed checks what List finds, and their order.
func wantListed(s *subject, p semel.ListParams, want ...string) {
	s.Helper()
	if got := names(s.list(p)); !slices.Equal(got, want) {
		s.Errorf("List %+v:\ngot  %q\nwant %q", p, got, want)
	}
}

const wholeList = 100

func listFinds(s *subject, in situation) {
	s.claim(params("another"))
	in.make(s, params("key"))
	want := s.get("key")
	found := s.list(semel.ListParams{States: []semel.State{want.State}, Limit: wholeList})
	i := slices.IndexFunc(found, func(r semel.Record) bool { return r.Key == "key" })
	if i < 0 {
		s.Fatalf("got %q, want the key among them", names(found))
	}
	got := found[i]
	near(s, got.Now.Sub(got.FirstStarted), want.Now.Sub(want.FirstStarted), "age")
	want.Reply = semel.Reply{Status: want.Reply.Status}
	assert.Equal(s, plain(got), plain(want), "the record")
}

// inAllStates makes a record in each state, named for it, the first to be
// listed first.
func inAllStates(s *subject) {
	s.Helper()
	s.claim(params("running"))
	s.advance(slack)
	s.end(s.claim(params("done")), toDone)
	s.advance(slack)
	s.end(s.claim(params("released")), toReleased)
	s.advance(slack)
	s.end(s.claim(params("unknown")), toUnknown)
}

func listStates(s *subject) {
	inAllStates(s)
	for _, c := range []struct {
		states []semel.State
		want   []string
	}{
		{nil, []string{"running", "done", "released", "unknown"}},
		{[]semel.State{semel.StateRunning}, []string{"running"}},
		{[]semel.State{semel.StateDone}, []string{"done"}},
		{[]semel.State{semel.StateReleased}, []string{"released"}},
		{[]semel.State{semel.StateUnknown}, []string{"unknown"}},
		{[]semel.State{semel.StateUnknown, semel.StateRunning, semel.StateUnknown}, []string{"running", "unknown"}},
		{[]semel.State{semel.StateAbsent}, nil},
	} {
		for i, key := range c.want {
			c.want[i] = scope + "/" + key
		}
		wantListed(s, semel.ListParams{States: c.states, Limit: wholeList}, c.want...)
	}
}

func listScope(s *subject) {
	for _, of := range []string{"a", "A", "a ", "a\x00", "a/b", "\xff"} {
		p := params("key")
		p.Scope, p.OperationID = of, semel.NewOperationID(semel.DefaultService, of, "key", 0)
		s.claim(p)
		s.advance(slack)
	}
	for _, of := range []string{"a", "A", "a ", "a\x00", "\xff"} {
		wantListed(s, semel.ListParams{Scope: of, Limit: wholeList}, of+"/key")
		wantListed(s, semel.ListParams{Scope: of, States: []semel.State{semel.StateRunning}, Limit: wholeList}, of+"/key")
		wantListed(s, semel.ListParams{Scope: of, States: []semel.State{semel.StateDone}, Limit: wholeList})
	}
	wantListed(s, semel.ListParams{Scope: "b", Limit: wholeList})
}

func listOldestFirst(s *subject) {
	s.end(s.claim(resuming("first")), toUnknown)
	s.advance(slack)
	s.claim(params("second"))
	s.advance(slack)
	s.claim(resuming("first")) // again, which does not make it younger
	s.end(s.claim(params("third")), toDone)
	wantListed(s, semel.ListParams{Limit: wholeList}, scope+"/first", scope+"/second", scope+"/third")
}

func listOlderThan(s *subject) {
	s.claim(params("old"))
	s.advance(lease)
	s.claim(params("young"))
	s.advance(lease)
	wantListed(s, semel.ListParams{OlderThan: lease - slack, Limit: wholeList}, scope+"/old", scope+"/young")
	wantListed(s, semel.ListParams{OlderThan: lease + slack, Limit: wholeList}, scope+"/old")
	wantListed(s, semel.ListParams{OlderThan: 2*lease + slack, Limit: wholeList})
}

func listPages(s *subject) {
	var want []string
	for i := range 12 {
		p := params([]string{"key", "k\x00", "KEY", "\xff"}[i%4])
		p.Scope = []string{scope, scope + "\x00", "S"}[i/4]
		p.OperationID = semel.NewOperationID(semel.DefaultService, p.Scope, p.Key, 0)
		rec := s.claim(p)
		if i%3 == 0 {
			s.end(rec, toUnknown)
		}
		want = append(want, p.Scope+"/"+p.Key)
	}
	slices.Sort(want)
	for _, limit := range []int{1, 5, len(want)} {
		var met []string
		p := semel.ListParams{Limit: limit}
		for range len(want) + 1 {
			page := s.list(p)
			if len(page) == 0 {
				break
			}
			met = append(met, names(page)...)
			p.After = page[len(page)-1].Position()
		}
		slices.Sort(met)
		assert.Equal(s, met, want, "on pages of %d", limit)
	}
}

func listLimit(s *subject) {
	inAllStates(s)
	wantListed(s, semel.ListParams{Limit: 2}, scope+"/running", scope+"/done")
	for _, limit := range []int{0, -1} {
		wantListed(s, semel.ListParams{Limit: limit})
	}
}

func listExpired(s *subject) {
	inAllStates(s)
	s.advance(retention + slack)
	wantListed(s, semel.ListParams{Limit: wholeList}, scope+"/running", scope+"/unknown")
	s.sweep(wholeList)
	wantListed(s, semel.ListParams{Limit: wholeList}, scope+"/running", scope+"/unknown")
}

func listTombstone(s *subject) {
	s.end(s.claim(params("key")), toUnknown)
	s.settle("key", settling(toReleased, semel.NewOperationID(semel.DefaultService, scope, "key", 1)))
	wantListed(s, semel.ListParams{Limit: wholeList}, scope+"/key")
	s.advance(retention + slack)
	assert.Equal(s, s.sweep(wholeList), 1, "swept")
	wantListed(s, semel.ListParams{Limit: wholeList})
	assert.Equal(s, s.get("key").Generation, 1, "generation of what is left")
}

func listStuck(s *subject) {
	s.end(s.claim(params("unknown")), toUnknown)
	s.claim(params("lapsed"))
	alive := s.claim(params("alive"))
	s.end(s.claim(params("done")), toDone)
	s.lapse()
	wantHeld(s, s.extend(alive, renew), semel.HeldYes, semel.StateRunning)
	s.end(s.claim(params("young")), toUnknown)
	want := []string{scope + "/lapsed", scope + "/unknown"}
	for _, limit := range []int{2, wholeList} {
		found, err := semel.ListStuck(s.Context(), s.lister(), semel.ListParams{OlderThan: lease, Limit: limit})
		assert.NoError(s, err, "ListStuck")
		got := names(found)
		slices.Sort(got) // they are of one instant, where the clock is virtual
		assert.Equal(s, got, want, "stuck, at most %d", limit)
	}
	found, err := semel.ListStuck(s.Context(), s.lister(), semel.ListParams{OlderThan: lease, Limit: 1})
	assert.NoError(s, err, "ListStuck")
	assert.Equal(s, len(found), 1, "stuck, at most 1")
}

func (s *subject) byOperation(id semel.OperationID) semel.Record {
	s.Helper()
	rec, err := s.lister().ByOperation(s.Context(), id)
	assert.NoError(s, err, "ByOperation")
	return rec
}

func operationAsGet(s *subject, in situation) {
	s.claim(params("another"))
	rec := in.make(s, params("key"))
	got := s.byOperation(rec.OperationID)
	near(s, got.Now.Sub(got.FirstStarted), s.get("key").Now.Sub(got.FirstStarted), "age")
	assert.Equal(s, plain(got), plain(s.get("key")), "the record")
}

func operationExpired(s *subject) {
	rec := s.claim(params("key"))
	s.end(rec, toDone)
	s.advance(retention + slack)
	assert.Equal(s, plain(s.byOperation(rec.OperationID)), plain(s.get("key")), "the record")
	s.sweep(wholeList)
	assert.Equal(s, s.byOperation(rec.OperationID).State, semel.StateAbsent, "state after the sweep")
}

func operationAbsent(s *subject) {
	s.claim(params("key"))
	got := s.byOperation(semel.NewOperationID(semel.DefaultService, scope, "another", 0))
	assert.Equal(s, got.State, semel.StateAbsent, "state")
}

func operationStartedOver(s *subject) {
	first := s.claim(params("key"))
	s.end(first, toUnknown)
	anew := semel.NewOperationID(semel.DefaultService, scope, "key", 1)
	s.settle("key", settling(toReleased, anew))
	assert.Equal(s, s.byOperation(anew).Key, "key", "key of the new id")
	assert.Equal(s, s.byOperation(first.OperationID).State, semel.StateAbsent, "state of the old id")
	s.advance(retention + slack)
	s.sweep(wholeList)
	assert.Equal(s, s.byOperation(anew).Generation, 1, "generation of the tombstone, by its id")
}
