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
	"time"
)

// drainWithin is how long a child that is told to end finishes requests.
const drainWithin = time.Second

// Serve is the child's side of a [Process]: it listens, says where on stdout,
// serves handler, and ends when stdin does. An interrupt from the terminal goes
// to the supervisor, which then closes stdin; here it is ignored.
func Serve(ctx context.Context, listen string, handler http.Handler, stdin io.Reader, stdout io.Writer) error {
	signal.Ignore(os.Interrupt)
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	fmt.Fprintf(stdout, "%s%s\n", readyPrefix, l.Addr())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(io.Discard, stdin) //nolint:errcheck // an error is an end too.
	}()
	select {
	case err := <-served:
		return err
	case <-ended:
	case <-ctx.Done():
	}
	return stop(server)
}

// stop lets requests finish for a while, then drops them.
func stop(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}
