package storm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// lease is that of the payment service (docs/demo.md).
	lease = 2 * time.Second
	// frozenFor is how long a service is frozen: so much longer than its lease
	// that it goes on well after it was taken over.
	frozenFor = lease + 500*time.Millisecond
	// startWithin is how long the processes of a run may take to be up.
	startWithin = 60 * time.Second
	// leaveWithin is how long a process may take to be gone when all are told
	// to end, or when its supervisor was killed.
	leaveWithin = time.Minute
)

// world is the processes of a run, and what happens to them.
type world struct {
	plan

	program string
	dir     string // ends in a slash; all their command lines name it
	log     journal
	// Of bank and supervisor there is one: the supervisor has a bank of its
	// own.
	bank       *kept
	supervisor *kept
	doors      []*kept // where orders may be sent; the supervisor's front is one
	running    []*kept
	strikes    sync.WaitGroup

	mu    sync.Mutex
	kills map[string]int
	hits  []time.Time // when something was killed, or went on
}

// play plays p over new files in dir and returns what there is to judge. The
// error is a fault of the machine.
func play(ctx context.Context, p plan, program, dir string) (*evidence, error) {
	w := &world{plan: p, program: program, dir: dir + string(filepath.Separator), kills: make(map[string]int)}
	begun := time.Now()
	placed, err := w.weather(ctx)
	wrong := w.end(leaveWithin)
	if err != nil {
		return nil, errors.Join(append(wrong, err)...)
	}
	e := &evidence{plan: p, orders: placed, log: &w.log, begun: begun, kills: w.kills, hits: w.hits}
	for _, err := range wrong {
		e.wrong = append(e.wrong, err.Error())
	}
	return e, e.read(ctx, w.dir)
}

// weather starts the processes and places the orders until all is quiet.
func (w *world) weather(ctx context.Context) ([]*placed, error) {
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	all := make([]*placed, len(w.orders))
	for i, o := range w.orders {
		all[i] = &placed{order: o}
	}
	w.placeAll(all, false)
	w.placeAll(all, true)
	if w.door == keyedDoor {
		var looks sync.WaitGroup
		for _, p := range all {
			looks.Go(func() { w.look(p) })
		}
		looks.Wait()
	}
	return all, nil
}

// placeAll places the orders of which last is so, and returns when they have
// their answers and nothing is to strike any more.
func (w *world) placeAll(all []*placed, last bool) {
	var clients sync.WaitGroup
	for _, p := range all {
		if p.last != last {
			continue
		}
		for n := range p.clients {
			clients.Go(func() {
				<-time.After(p.at)
				w.place(p, n)
			})
		}
	}
	clients.Wait()
	w.strikes.Wait()
}

// keep returns a process that has not been started yet.
func (w *world) keep(name string, args func(listen string) []string) *kept {
	return &kept{
		name: name, program: w.program, args: args, log: &w.log,
		address: listening, end: closeInput,
		up: make(chan struct{}), ended: make(chan struct{}),
	}
}

// start starts the processes. The services come up together, as the first ones
// on their file.
func (w *world) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	bank, services := w.keepBank(), w.services
	if w.supervised {
		w.supervisor, w.doors = bank, []*kept{bank}
		services--
	} else {
		w.bank = bank
	}
	if err := w.run(ctx, bank); err != nil {
		return err
	}
	var others []*kept
	for n := range services {
		others = append(others, w.keep(fmt.Sprintf("service %d", n+1), func(listen string) []string {
			return []string{"demo-process", "service", "--file=" + w.dir + "service.db", "--bank=" + bank.where(), "--listen=" + listen}
		}))
	}
	w.doors = append(w.doors, others...)
	if err := w.run(ctx, others...); err != nil {
		return err
	}
	want := w.services + 1
	if w.supervised {
		want++
	}
	if got := processesOf(w.dir); len(got) != want {
		return fmt.Errorf("%d processes are found and not %d, so none could be missed at the end: %v", len(got), want, got)
	}
	return nil
}

// keepBank returns the bank, or the supervisor, whose front passes charges on
// to its bank.
func (w *world) keepBank() *kept {
	if w.supervised {
		k := w.keep("supervisor", func(listen string) []string {
			return []string{"demo", "--no-browser", "--json", "--verbose", "--data=" + w.dir, "--addr=" + listen}
		})
		k.address, k.end = announced, terminate
		return k
	}
	return w.keep("bank", func(listen string) []string {
		args := []string{"demo-process", "bank", "--file=" + w.dir + "bank.db", "--listen=" + listen}
		if w.forgets {
			args = append(args, "--forgets")
		}
		return args
	})
}

// run starts processes and waits until they are up.
func (w *world) run(ctx context.Context, all ...*kept) error {
	for _, k := range all {
		w.running = append(w.running, k)
		go k.run()
	}
	for _, k := range all {
		if err := k.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end ends the processes, the bank last, and returns what was wrong with that:
// one that is still there after so long was left behind.
func (w *world) end(within time.Duration) []error {
	var wrong []error
	for _, k := range slices.Backward(w.running) {
		if err := k.stop(); err != nil {
			wrong = append(wrong, err)
		}
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	late := time.After(within)
	for {
		left := processesOf(w.dir)
		if len(left) == 0 {
			return wrong
		}
		select {
		case <-again.C:
		case <-late:
			for _, p := range left {
				p.kill(w.dir)
				wrong = append(wrong, fmt.Errorf("process %d was left behind: %q", p.pid, p.args))
			}
			return wrong
		}
	}
}

// The strikes, as a run counts them.
const (
	struckAll             = "everything"
	struckSupervisor      = "supervisor"
	struckService         = "service"
	struckBank            = "bank"
	struckChildService    = "supervisor's service"
	struckChildBank       = "supervisor's bank"
	struckFrozen          = "service, frozen"
	struckBeforeTheCharge = "service, " + string(killedBeforeCharge)
	struckAfterTheCharge  = "service, " + string(killedAfterCharge)
)

// strikes are all of them: a long storm has each.
func strikes() []string {
	return []string{
		struckAll, struckSupervisor, struckService, struckBank, struckChildService, struckChildBank,
		struckFrozen, struckBeforeTheCharge, struckAfterTheCharge,
	}
}

// strikeAfter lets m's strike happen at its moment, whatever else happens.
func (w *world) strikeAfter(m mishap, to *kept) {
	w.strikes.Go(func() {
		<-time.After(m.after)
		w.strike(m.kind, to)
	})
}

// strike brings k about for a request that went to a process.
func (w *world) strike(k kind, to *kept) {
	switch {
	case k == killEverything && w.killAll():
		w.struck(struckAll)
	case k == freezeService, k == freezeAtWork:
		w.freeze(to)
	case k == killSupervisor && w.supervisor.signal(os.Kill):
		w.struck(struckSupervisor)
	case k == killService && to != w.supervisor && to.signal(os.Kill):
		w.struck(struckService)
	case k == killService && to == w.supervisor && w.killChild("service"):
		w.struck(struckChildService)
	case k == killBank && !w.supervised && w.bank.signal(os.Kill):
		w.struck(struckBank)
	case k == killBank && w.supervised && w.killChild("bank"):
		w.struck(struckChildBank)
	}
}

// killAll kills all processes and reports whether there were any.
func (w *world) killAll() bool {
	killed := false
	for _, p := range processesOf(w.dir) {
		killed = p.kill(w.dir) || killed
	}
	return killed
}

// killChild kills the supervisor's child of that name, if one is up.
func (w *world) killChild(name string) bool {
	parent := w.supervisor.current().cmd.Process.Pid
	for _, p := range processesOf(w.dir) {
		if p.parent == parent && slices.Contains(p.args, name) {
			return p.kill(w.dir)
		}
	}
	return false
}

// freeze stops a service for longer than its lease. Others take over what it
// was doing; then it goes on, and does not know.
func (w *world) freeze(to *kept) {
	if to == w.supervisor {
		to = w.doors[len(w.doors)-1]
	}
	l := to.current()
	if l.gone() || l.cmd.Process.Signal(syscall.SIGSTOP) != nil {
		return
	}
	w.struck(struckFrozen)
	<-time.After(frozenFor)
	l.cmd.Process.Signal(syscall.SIGCONT) // unless it was killed meanwhile
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hits = append(w.hits, time.Now())
}

// struck counts a strike.
func (w *world) struck(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kills[what]++
	w.hits = append(w.hits, time.Now())
}

// calm returns since when nothing has gone wrong with the order: neither with
// its own requests nor with any process.
func (w *world) calm(p *placed) time.Time {
	since := p.troubled()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, hit := range w.hits {
		if hit.After(since) {
			since = hit
		}
	}
	return since
}
