package scripts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/client"
	"github.com/semel-dev/semel/cmd/examples/payments/payer"
)

// Payer is how a customer's program is started, for the script that kills it:
// see the package payer.
type Payer struct {
	// Path of the program, and its first arguments.
	Path string
	Args []string
	// Folder is where it may keep its intents.
	Folder string
}

// The two ways of a customer's program to keep its intents.
const (
	onDisk   = "disk"
	inMemory = "memory"
)

// processes is how many of them one order takes: one is killed, the next one
// comes after it.
const processes = 2

// crash plays the script in which the client is killed, for a program that
// keeps its intent on disk and for one that does not. Both send a key.
func (r *Runner) crash(ctx context.Context, s Script) ([]Part, error) {
	var parts []Part
	for _, keeps := range []string{onDisk, inMemory} {
		part, err := r.playCrash(ctx, s, keeps)
		if err != nil {
			return parts, fmt.Errorf("a client that keeps its intent %s: %w", keeps, err)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// playCrash places one order, from one process after the other.
func (r *Runner) playCrash(ctx context.Context, s Script, keeps string) (Part, error) {
	const door = payments.Keyed
	before, err := r.demo.Ledger(ctx, payments.Anonymous)
	if err != nil {
		return Part{}, err
	}
	named := s
	named.Name += ", " + keeps
	o, price := r.newOrder(named, door)
	part := Part{Door: door, Keeps: keeps, Price: price}
	var start time.Time // of the first request
	for n := range processes {
		p := r.newProcess(named, o, n+1)
		if keeps == onDisk {
			p.cfg.Folder = filepath.Join(r.payer.Folder, "intents")
		}
		if err := p.run(ctx, r.payer, &start); err != nil {
			return part, err
		}
		part.Tries = append(part.Tries, p.tries...)
	}
	part.AnsweredAfter = seconds(time.Since(start))
	charges := int64(1)
	if keeps == inMemory {
		charges = 2
	}
	if part.Ledger, err = r.settled(ctx, door, before[door], charges); err != nil {
		return part, err
	}
	last := part.last()
	part.Payment = last.Payment
	if part.Asked, err = r.asked(ctx, last.Charge); err != nil {
		return part, err
	}
	part.Broken = judgeCrash(part)
	return part, nil
}

// process is one run of a customer's program.
type process struct {
	cfg    payer.Config
	number int
	tries  []Try
}

// newProcess prepares the run of that number. Each would send another key, if
// it had to make an intent. The first one is killed.
func (r *Runner) newProcess(s Script, o order, number int) *process {
	drawn := r.draws(s.Name, o.door, number)
	return &process{number: number, cfg: payer.Config{
		URL:   r.base + o.door.Path(),
		Order: o.id,
		Key:   fmt.Sprintf("%016x%016x", drawn.Uint64(), drawn.Uint64()),
		Body:  string(o.body),
		Dies:  number == 1,
	}}
}

func (p *process) flags() []string {
	flags := []string{"--url=" + p.cfg.URL, "--order=" + p.cfg.Order, "--key=" + p.cfg.Key, "--body=" + p.cfg.Body}
	if p.cfg.Folder != "" {
		flags = append(flags, "--folder="+p.cfg.Folder)
	}
	if p.cfg.Dies {
		flags = append(flags, "--dies")
	}
	return flags
}

// run runs the program to its end, whatever that is. It sets start when the
// first request leaves.
func (p *process) run(ctx context.Context, how Payer, start *time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, 2*AnswerWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, how.Path, append(how.Args, p.flags()...)...)
	stdin, err := cmd.StdinPipe() // it ends when this does
	if err != nil {
		return err
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	for events := json.NewDecoder(stdout); ; {
		var told payer.Told
		if err := events.Decode(&told); err != nil {
			break // it has ended
		}
		if start.IsZero() {
			*start = time.Now()
		}
		p.note(told, time.Since(*start), cmd.Process.Pid)
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	if p.wasKilled(cmd, time.Since(*start)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d: %w: %s", cmd.Process.Pid, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}

// note takes an event that came at that time.
func (p *process) note(told payer.Told, at time.Duration, pid int) {
	if told.Event == payer.Sends {
		p.tries = append(p.tries, Try{At: seconds(at), Client: p.number, Process: pid, Found: told.Found, key: told.Key})
		return
	}
	if len(p.tries) == 0 {
		return // an intent that was settled is told and not sent
	}
	last := &p.tries[len(p.tries)-1]
	switch told.Event {
	case payer.Ended:
		last.Took, last.Status, last.Replayed = last.until(at), told.Status, told.Replayed
		last.Saw = "no answer: the connection was closed"
		if told.Status != 0 {
			last.Saw = fmt.Sprintf("%d, which settles nothing", told.Status)
		}
	case payer.Result:
		if told.Status == 0 {
			return
		}
		read := answered(client.Answer{Status: told.Status, Replayed: told.Replayed, Body: told.Body}, order{})
		last.Code, last.Payment, last.Charge, last.Saw = read.Code, read.Payment, read.Charge, read.Saw
	}
}

// until is how long after it was sent that moment is, in seconds.
func (t *Try) until(at time.Duration) float64 {
	return seconds(at - time.Duration(t.At*float64(time.Second)))
}

// wasKilled notes that the program was, while it waited for an answer.
func (p *process) wasKilled(cmd *exec.Cmd, at time.Duration) bool {
	if cmd.ProcessState.Exited() || len(p.tries) == 0 {
		return false
	}
	last := &p.tries[len(p.tries)-1]
	last.Took, last.Killed = last.until(at), true
	last.Saw = "killed (SIGKILL), the answer unread"
	return true
}

// judgeCrash returns which promise part breaks, or nothing. What an intent in
// memory is there to show is the harm.
func judgeCrash(part Part) string {
	first, last := part.Tries[0], part.last()
	want := int64(1)
	if part.Keeps == inMemory {
		want = 2
	}
	got := part.Ledger
	switch {
	case !first.Killed:
		return "the first process was not killed while it waited: " + first.Saw
	case last.Status != http.StatusCreated:
		return fmt.Sprintf("process %d knew of no payment after %.1f s: %s", last.Process, part.AnsweredAfter, last.Saw)
	case got.Orders != 1:
		return fmt.Sprintf("the ledger counts %d orders for one", got.Orders)
	case got.Charges != want || got.Charged != 1 || got.Taken != want*part.Price:
		return fmt.Sprintf("it should have taken %s in %s", payments.Money(want*part.Price), count(want, "charge"))
	case got.Payments != want:
		return fmt.Sprintf("the service stored %s and not %d", count(got.Payments, "payment"), want)
	case part.Keeps == inMemory && (last.Found || last.key == first.key):
		return "what was in memory has outlived its process"
	case part.Keeps == inMemory:
		return ""
	case !last.Found || last.key != first.key:
		return "the second process sent another key"
	case !last.Replayed:
		return "the second process was not given the answer that the first one did not read"
	}
	return ""
}

// sentBy says, of a try in a script that kills the client, what was sent.
func (p Part) sentBy(t Try) string {
	who := fmt.Sprintf("process %d", t.Process)
	switch {
	case t.Found:
		return who + " finds the intent and sends it again"
	case t.Client > 1:
		return who + " finds none, makes another with a key of its own, and sends it"
	}
	return who + " makes an intent and sends it"
}
