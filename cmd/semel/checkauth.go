package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

const (
	// authLeave is how long what --auth-command has started may keep its output
	// open once the command itself has ended, or has to.
	authLeave = time.Second
	// longestAuth and longestComplaint are how much of its output is read, and
	// how much of its complaint is shown.
	longestAuth      = 1 << 16
	longestComplaint = 200
)

// askCommand runs a command of the user's and reads the fields that it prints. What
// the command has started ends with ctx as well.
func askCommand(ctx context.Context, command string) (http.Header, error) {
	out, complaint := &bounded{most: longestAuth}, &bounded{most: longestComplaint}
	cmd := exec.CommandContext(ctx, "sh", "-c", command) //nolint:gosec // the user's own command, as asked.
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, complaint, authLeave
	endTogether(cmd)
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("--auth-command had not ended: %w", ctx.Err())
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, errors.New("--auth-command has ended, and what it started in the background holds its output open")
	case err != nil:
		return nil, fmt.Errorf("--auth-command: %w: %s", err, strings.TrimSpace(complaint.text.String()))
	case out.cut:
		return nil, fmt.Errorf("--auth-command prints more than %d bytes", longestAuth)
	}
	return parseFields("each line that --auth-command prints", strings.Split(strings.TrimSpace(out.text.String()), "\n"))
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	most int
	text bytes.Buffer
	cut  bool
}

// Write takes all of p and keeps what there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	room := min(len(p), b.most-b.text.Len())
	b.text.Write(p[:room])
	b.cut = b.cut || room < len(p)
	return len(p), nil
}
