package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// count asks the system under test how many effects there are.
func (r *run) count(ctx context.Context) (int, error) {
	o := r.target.Observe
	ctx, cancel := context.WithTimeout(ctx, r.cfg.RequestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL, http.NoBody)
	if err != nil {
		return 0, err
	}
	maps.Copy(req.Header, o.Header)
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("counting effects: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("counting effects: GET %s answered %s", MaskedURL(o.URL), resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return 0, fmt.Errorf("counting effects: %w", err)
	}
	n, err := countAt(body, o.Pointer)
	if err != nil {
		return 0, fmt.Errorf("counting effects: GET %s: %w", MaskedURL(o.URL), err)
	}
	return n, nil
}

// countAt reads a number, or the length of an array, at an RFC 6901 pointer.
func countAt(body []byte, pointer string) (int, error) {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return 0, fmt.Errorf("the reply is no JSON: %w", err)
	}
	at := v
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch of := at.(type) {
		case map[string]any:
			at = of[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(of) {
				return 0, fmt.Errorf("the reply has nothing at %q", pointer)
			}
			at = of[i]
		default:
			at = nil
		}
	}
	switch found := at.(type) {
	case float64:
		return int(found), nil
	case []any:
		return len(found), nil
	case nil:
		return 0, fmt.Errorf("the reply has nothing at %q", pointer)
	}
	return 0, fmt.Errorf("what stands at %q is neither a number nor an array", pointer)
}
