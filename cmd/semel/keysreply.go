package main

import (
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/semel-dev/semel"
)

// replyFlags are a reply that repeats of an operation get from now on.
type replyFlags struct {
	status  int
	headers []string
	body    string
}

func (f *replyFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.status, "status", 0, "the `STATUS` of the reply that repeats get, such as 201")
	flags.StringArrayVar(&f.headers, "reply-header", nil, "a `FIELD` of it, as \"Content-Type: application/json\"; may be repeated")
	flags.StringVar(&f.body, "reply", "", "the `FILE` that has its body")
}

func (f *replyFlags) given() bool { return f.status != 0 || len(f.headers) > 0 || f.body != "" }

// madeByServer are fields that the server makes for each reply anew, or that are
// of one caller's session.
var madeByServer = []string{"Connection", "Content-Length", "Date", "Set-Cookie", "Trailer", "Transfer-Encoding", "Upgrade"}

func (f *replyFlags) check() error {
	if !f.given() {
		return nil
	}
	if f.status < 200 || f.status > 599 {
		return usagef("--status is %d; a reply has one of 200 to 599", f.status)
	}
	for _, field := range f.headers {
		name, _, ok := strings.Cut(field, ":")
		switch {
		case !ok || strings.TrimSpace(name) == "":
			return usagef("--reply-header is %q; it must be a name, a colon and a value", field)
		case slices.Contains(madeByServer, http.CanonicalHeaderKey(strings.TrimSpace(name))):
			return usagef("--reply-header is %q, which is no part of a saved reply", field)
		}
	}
	return nil
}

// read returns the reply, or nil if none is given.
func (f *replyFlags) read() (*semel.Reply, error) {
	if !f.given() {
		return nil, nil //nolint:nilnil // there is none.
	}
	reply := &semel.Reply{Status: f.status, Header: semel.Header{}}
	for _, field := range f.headers {
		name, value, _ := strings.Cut(field, ":")
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		reply.Header[name] = append(reply.Header[name], strings.TrimSpace(value))
	}
	if f.body == "" {
		return reply, nil
	}
	var err error
	reply.Body, err = os.ReadFile(f.body)
	return reply, err
}
