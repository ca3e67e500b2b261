package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"
)

// drainWithin is how long a child that is told to end finishes requests.
const drainWithin = time.Second

// Until is the first thing that a child calls. It returns a context that ends
// when the supervisor closes stdin. An interrupt from the terminal goes to the
// supervisor, which then does that; here it is ignored.
func Until(ctx context.Context, stdin io.Reader) context.Context {
	signal.Ignore(os.Interrupt)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		io.Copy(io.Discard, stdin) //nolint:errcheck // an error is an end too.
	}()
	return ctx
}

// SayWaits tells the supervisor that the child is not ready yet, and for what
// it waits. It has to say so again before the time is over that a child has to
// become ready.
func SayWaits(stdout io.Writer, forWhat string) {
	fmt.Fprintf(stdout, "%s%s\n", waitsPrefix, strings.ReplaceAll(forWhat, "\n", " "))
}

// Serve is the child's side of a [Process]: it listens, says where on stdout,
// serves handler, and ends when ctx does, which is that of [Until].
func Serve(ctx context.Context, listen string, handler http.Handler, stdout io.Writer) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	fmt.Fprintf(stdout, "%s%s\n", readyPrefix, l.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	return Drain(server, drainWithin)
}

// Drain stops a server: it lets requests finish for a while, then drops them.
func Drain(server *http.Server, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}
