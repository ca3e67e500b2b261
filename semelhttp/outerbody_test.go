package semelhttp_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// A body that is gone would pass for any other under its key.
func TestABodyThatALayerOutsideHasRead(t *testing.T) {
	t.Parallel()
	const form = "application/x-www-form-urlencoded"
	var parts bytes.Buffer
	w := multipart.NewWriter(&parts)
	assert.NoError(t, w.WriteField("amount", "1"))
	assert.NoError(t, w.Close())
	for name, tt := range map[string]struct {
		outside    func(*http.Request)
		media      string
		body       string
		withLength bool
		want       string
	}{
		"a form that was parsed is refused": {
			func(r *http.Request) { r.FormValue("_method") }, form, "amount=1", false, "released",
		},
		"a form of many spellings that was parsed is refused": {
			func(r *http.Request) { r.ParseForm() }, "Application/X-WWW-Form-Urlencoded ; charset=UTF-8", "amount=1", false, "released",
		},
		"a form that was parsed is refused, also if it has a length": {
			func(r *http.Request) { r.FormValue("_method") }, form, "amount=1", true, "released",
		},
		"parts that were parsed are refused": {
			func(r *http.Request) { r.FormValue("_method") }, w.FormDataContentType(), parts.String(), false, "released",
		},
		"parts that were read one by one are refused": {
			func(r *http.Request) {
				reader, err := r.MultipartReader()
				for err == nil {
					_, err = reader.NextPart()
				}
			}, w.FormDataContentType(), parts.String(), false, "released",
		},
		"a body that was taken away is refused": {
			func(r *http.Request) { r.Body = http.NoBody }, "application/json", "{}", false, "released",
		},
		"a body of known length that was taken away is refused": {
			func(r *http.Request) { r.Body = http.NoBody }, "application/json", "{}", true, "released",
		},
		"a body that was put back is compared": {
			func(r *http.Request) {
				read, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(read))
				r.ParseForm()
				r.Body = io.NopCloser(bytes.NewReader(read))
			}, form, "amount=1", false, "executed",
		},
		"a body that is no form was not read by parsing one": {
			func(r *http.Request) { r.FormValue("_method") }, "application/json", "{}", false, "executed",
		},
		"nor was one that has nothing in it": {
			func(r *http.Request) { r.FormValue("_method") }, "application/json", "", false, "executed",
		},
		"no body is none": {
			func(r *http.Request) { r.FormValue("_method") }, form, "", true, "executed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overAll(t, func(t *testing.T, proto string) {
				s := newService(t, settings{})
				inner := s.protect(t, semelhttp.Route{}, s.created)
				srv := serve(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					tt.outside(r)
					inner.ServeHTTP(w, r)
				}))
				var body io.Reader = strings.NewReader(tt.body)
				if !tt.withLength {
					body = struct{ io.Reader }{body}
				}
				req := keyed(t.Context(), t, srv.URL, "k1", body)
				req.Header.Set("Content-Type", tt.media)
				resp, err := srv.Client().Do(req)
				assert.NoError(t, err)
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				assert.NoError(t, err)
				assert.Equal(t, resp.Header.Get("Semel-Outcome"), tt.want, "%s", text)
				if tt.want == "released" {
					assert.Contains(t, string(text), `"code":"body-incomplete"`)
					assert.Equal(t, s.runCount(), 0)
				}
			})
		})
	}
}
