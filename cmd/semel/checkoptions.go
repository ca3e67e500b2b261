package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/semel-dev/semel/check"
)

// checkOptions say what is tested and how, in flags and, by the same names, in a
// file of several operations.
type checkOptions struct {
	URL             string        `yaml:"url"`
	Request         string        `yaml:"request"`
	Header          []string      `yaml:"header"`
	Data            string        `yaml:"data"`
	MismatchPointer string        `yaml:"mismatch-pointer"`
	MismatchData    string        `yaml:"mismatch-data"`
	RefusedData     string        `yaml:"refused-data"`
	FailingData     string        `yaml:"failing-data"`
	TenantHeader    string        `yaml:"tenant-header"`
	Observe         string        `yaml:"observe"`
	ObservePointer  string        `yaml:"observe-pointer"`
	ObserveHeader   []string      `yaml:"observe-header"`
	Ignore          []string      `yaml:"ignore"`
	AuthCommand     string        `yaml:"auth-command"`
	KeyHeader       string        `yaml:"key-header"`
	BareKeys        bool          `yaml:"bare-keys"`
	Run             []string      `yaml:"run"`
	Skip            []string      `yaml:"skip"`
	Strict          bool          `yaml:"strict"`
	Seed            uint64        `yaml:"seed"`
	RateLimit       float64       `yaml:"rate-limit"`
	Timeout         time.Duration `yaml:"timeout"`
	RequestTimeout  time.Duration `yaml:"request-timeout"`
}

// add adds the flags. What they hold already is their default.
func (o *checkOptions) add(flags *pflag.FlagSet) {
	flags.StringVarP(&o.Request, "request", "X", o.Request, "`METHOD` of the request")
	flags.StringArrayVarP(&o.Header, "header", "H", nil, "field of the request, `'Name: value'` (repeatable)")
	flags.StringVarP(&o.Data, "data", "d", "", "`BODY|@FILE` that is sent; {{unique}} in it is new for each operation")
	flags.StringVar(&o.MismatchPointer, "mismatch-pointer", "", "JSON `POINTER` to the value that is changed for another request under a used key (default: the first number or string)")
	flags.StringVar(&o.MismatchData, "mismatch-data", "", "another good `BODY|@FILE` instead")
	flags.StringVar(&o.RefusedData, "refused-data", "", "`BODY|@FILE` that the API refuses with a 4xx")
	flags.StringVar(&o.FailingData, "failing-data", "", "`BODY|@FILE` that the API fails on with a 5xx")
	flags.StringVar(&o.TenantHeader, "tenant-header", "", "field that tells callers apart, with two of them: `'Name: one,two'`")
	flags.StringVar(&o.Observe, "observe", "", "`URL` of JSON that counts the effects")
	flags.StringVar(&o.ObservePointer, "observe-pointer", "", "JSON `POINTER` to the number, or the array, that counts them")
	flags.StringArrayVar(&o.ObserveHeader, "observe-header", nil, "field of that request, `'Name: value'` (repeatable)")
	flags.StringArrayVar(&o.Ignore, "ignore", nil, "JSON `POINTER` to what differs in each reply and says nothing of the execution (repeatable)")
	flags.StringVar(&o.AuthCommand, "auth-command", "", "shell `COMMAND` that prints fields 'Name: value', asked at the start and after a 401")
	flags.StringVar(&o.KeyHeader, "key-header", o.KeyHeader, "`NAME` of the field that carries the key")
	flags.BoolVar(&o.BareKeys, "bare-keys", false, "send keys without the quotes of a structured field")
	flags.StringArrayVar(&o.Run, "run", nil, "`ID` of a case, or its beginning, to run (repeatable; default: all)")
	flags.StringArrayVar(&o.Skip, "skip", nil, "id of a case, or its beginning, not to run, and why: `ID=reason` (repeatable)")
	flags.BoolVar(&o.Strict, "strict", false, "let a broken SHOULD fail as a MUST does")
	flags.Uint64Var(&o.Seed, "seed", o.Seed, "`NUMBER` that chooses where replies are cut")
	flags.Float64Var(&o.RateLimit, "rate-limit", 0, "`NUMBER` of requests in a second at most, but for those that are sent at once (0: no limit)")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "how long an operation is tested at most; what was found by then is reported")
	flags.DurationVar(&o.RequestTimeout, "request-timeout", o.RequestTimeout, "how long one request may take")
}

// operation reads the options.
func (o *checkOptions) operation() (operation, error) {
	target, err := o.target()
	if err != nil {
		return operation{}, err
	}
	cfg, err := o.config()
	return operation{target: target, config: cfg}, err
}

func (o *checkOptions) target() (check.Target, error) {
	t := check.Target{
		Method: strings.ToUpper(o.Request), URL: o.URL, MismatchPointer: o.MismatchPointer,
		Ignore: o.Ignore, KeyHeader: o.KeyHeader, BareKeys: o.BareKeys,
	}
	var err error
	if t.Header, err = parseFields("--header", o.Header); err != nil {
		return t, err
	}
	for _, body := range []struct {
		flag, text string
		into       *[]byte
	}{
		{"--data", o.Data, &t.Body},
		{"--mismatch-data", o.MismatchData, &t.OtherBody},
		{"--refused-data", o.RefusedData, &t.RefusedBody},
		{"--failing-data", o.FailingData, &t.FailingBody},
	} {
		if *body.into, err = readData(body.flag, body.text); err != nil {
			return t, err
		}
	}
	if t.Header.Get("Content-Type") == "" && json.Valid(t.Body) {
		t.Header.Set("Content-Type", "application/json")
	}
	if o.TenantHeader != "" {
		name, values, _ := strings.Cut(o.TenantHeader, ":")
		one, two, found := strings.Cut(values, ",")
		if !found {
			return t, usagef("--tenant-header must be 'Name: one,two', not %q", o.TenantHeader)
		}
		t.TenantHeader, t.Tenants = strings.TrimSpace(name), [2]string{strings.TrimSpace(one), strings.TrimSpace(two)}
	}
	if o.AuthCommand != "" {
		t.AuthorizeFunc = func(ctx context.Context) (http.Header, error) { return askCommand(ctx, o.AuthCommand) }
	}
	if o.Observe != "" || o.ObservePointer != "" {
		t.Observe, err = o.observed()
	}
	return t, err
}

func (o *checkOptions) observed() (*check.Observe, error) {
	if (o.Observe == "") != (o.ObservePointer == "") {
		return nil, usagef("--observe and --observe-pointer go together")
	}
	header, err := parseFields("--observe-header", o.ObserveHeader)
	return &check.Observe{URL: o.Observe, Pointer: o.ObservePointer, Header: header}, err
}

func (o *checkOptions) config() (check.Config, error) {
	cfg := check.Config{Run: o.Run, Strict: o.Strict, Seed: o.Seed, RequestsPerSecond: o.RateLimit, Timeout: o.Timeout, RequestTimeout: o.RequestTimeout, Skip: make(map[string]string)}
	for _, text := range o.Skip {
		id, why, found := strings.Cut(text, "=")
		if !found || why == "" {
			return cfg, usagef("--skip must be ID=reason, not %q: who reads the report wants to know why", text)
		}
		cfg.Skip[id] = why
	}
	return cfg, nil
}

// clone is a copy that shares nothing that is added to.
func (o checkOptions) clone() checkOptions {
	for _, list := range []*[]string{&o.Header, &o.ObserveHeader, &o.Ignore, &o.Run, &o.Skip} {
		*list = slices.Clone(*list)
	}
	return o
}

func parseFields(flag string, lines []string) (http.Header, error) {
	h := make(http.Header)
	for i, line := range lines {
		name, value, found := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !found || name == "" {
			// The line may be a secret.
			return nil, usagef("%s must be 'Name: value'; number %d has no name before a colon", flag, i+1)
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}

func readData(flag, text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return []byte(text), nil
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	return body, nil
}
