package fingerprint_test

import (
	"bytes"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"

	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/internal/assert"
)

// form returns a request with the given multipart text, LF for CRLF, in which
// BOUNDARY stands for the boundary.
func form(boundary, text string) fingerprint.Request {
	text = strings.ReplaceAll(text, "\n", "\r\n")
	text = strings.ReplaceAll(text, "BOUNDARY", boundary)
	return post("multipart/form-data; boundary="+boundary, text)
}

// upload is the case's form as a client library writes it.
func upload(t testing.TB, boundary, content string) fingerprint.Request {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	assert.NoError(t, w.SetBoundary(boundary))
	file, err := w.CreateFormFile("file", "hello.txt")
	assert.NoError(t, err)
	_, err = file.Write([]byte(content))
	assert.NoError(t, err)
	assert.NoError(t, w.WriteField("n", "1"))
	assert.NoError(t, w.Close())
	return post(w.FormDataContentType(), body.String())
}

// Case C45.
func TestFalseMismatch(t *testing.T) {
	t.Parallel()
	t.Run("the same parts under another boundary are the same request", func(t *testing.T) {
		t.Parallel()
		same(t, upload(t, "aaa", "hi"), upload(t, "bbb", "hi"))
		same(t, upload(t, "aaa", ""), upload(t, "b b(c)", ""))
	})
	t.Run("another content is another request", func(t *testing.T) {
		t.Parallel()
		other(t, upload(t, "aaa", "hi"), upload(t, "ccc", "ho"))
		other(t, upload(t, "aaa", "hi"), upload(t, "aaa", "hi\r\n"))
	})
}

func TestMultipart(t *testing.T) {
	t.Parallel()
	const text = "--BOUNDARY\nContent-Disposition: form-data; name=\"a\"; filename=\"f\"\nContent-Type: text/plain\n\nx\n--BOUNDARY\n\ny\n--BOUNDARY--\n"
	change := func(old, to string) fingerprint.Request {
		changed := strings.Replace(text, old, to, 1)
		if changed == text {
			t.Fatalf("%q is not in the text", old)
		}
		return form("b2", changed)
	}
	t.Run("these are the same", func(t *testing.T) {
		t.Parallel()
		for claim, r := range map[string]fingerprint.Request{
			"no line end after the last boundary":   change("BOUNDARY--\n", "BOUNDARY--"),
			"header names in another case":          change("Content-Disposition", "content-disposition"),
			"a disposition spelled differently":     change(`form-data; name="a"; filename="f"`, `Form-Data;filename=f ; name=a`),
			"a part's type in another case":         change("text/plain", "Text/Plain"),
			"white space around a header's value":   change("text/plain", "  text/plain\t"),
			"a part's headers in another order":     change("Content-Disposition: form-data; name=\"a\"; filename=\"f\"\nContent-Type: text/plain", "Content-Type: text/plain\nContent-Disposition: form-data; name=\"a\"; filename=\"f\""),
			"the boundary's own quotes and spacing": post(`Multipart/Form-Data; boundary="b3"`, string(form("b3", text).Body)),
		} {
			p := policy(t, fingerprint.Config{})
			assert.True(t, p.Of(form("b1", text)).Same(p.Of(r)), claim)
		}
	})
	t.Run("these are others", func(t *testing.T) {
		t.Parallel()
		for claim, r := range map[string]fingerprint.Request{
			"another content":           change("\nx\n", "\nX\n"),
			"another name":              change(`name="a"`, `name="b"`),
			"the case of a name":        change(`name="a"`, `name="A"`),
			"another file name":         change(`filename="f"`, `filename="g"`),
			"no file name":              change(`; filename="f"`, ""),
			"another type of a part":    change("text/plain", "text/html"),
			"no type of a part":         change("Content-Type: text/plain\n", ""),
			"a header more":             change("Content-Type", "X: 1\nContent-Type"),
			"parts in another order":    form("b2", "--BOUNDARY\n\ny\n--BOUNDARY\nContent-Disposition: form-data; name=\"a\"; filename=\"f\"\nContent-Type: text/plain\n\nx\n--BOUNDARY--\n"),
			"a part less":               change("--BOUNDARY\n\ny\n", ""),
			"a part more":               change("--BOUNDARY\n\ny\n", "--BOUNDARY\n\ny\n--BOUNDARY\n\ny\n"),
			"a part moved into another": change("\nx\n--BOUNDARY\n\ny\n", "\nx\n--OTHER\n\ny\n"),
			"a parameter of the type":   post("multipart/form-data; boundary=b2; x=1", string(form("b2", text).Body)),
			"another multipart type":    post("multipart/mixed; boundary=b2", string(form("b2", text).Body)),
		} {
			p := policy(t, fingerprint.Config{})
			assert.True(t, !p.Of(form("b1", text)).Same(p.Of(r)), claim)
		}
	})
	t.Run("a form without parts is read too", func(t *testing.T) {
		t.Parallel()
		same(t, form("b1", "--BOUNDARY--\n"), form("b2", "--BOUNDARY--\n"))
	})
	t.Run("headers of one name keep their order", func(t *testing.T) {
		t.Parallel()
		const up, down = "--BOUNDARY\nX: 1\nX: 2\n\n\n--BOUNDARY--", "--BOUNDARY\nX: 2\nX: 1\n\n\n--BOUNDARY--"
		same(t, form("b1", up), form("b2", up))
		other(t, form("b1", up), form("b2", down))
	})
	t.Run("any header counts, by name and trimmed value", func(t *testing.T) {
		t.Parallel()
		same(t, form("b1", "--BOUNDARY\nX: 1\n\n\n--BOUNDARY--"), form("b2", "--BOUNDARY\nx:\t1  \n\n\n--BOUNDARY--"))
		other(t, form("b1", "--BOUNDARY\nX: 1\n\n\n--BOUNDARY--"), form("b2", "--BOUNDARY\nY: 1\n\n\n--BOUNDARY--"))
		other(t, form("b1", "--BOUNDARY\nX: a\n\n\n--BOUNDARY--"), form("b2", "--BOUNDARY\nX: A\n\n\n--BOUNDARY--"))
	})
	t.Run("a part cannot be forged inside another", func(t *testing.T) {
		t.Parallel()
		two := form("b1", "--BOUNDARY\n\nx\n--BOUNDARY\n\ny\n--BOUNDARY--")
		zeros := strings.Repeat("\x00", 7)
		for _, seam := range []string{"", "\x01", "\x01\x00" + zeros, "\x01\x00" + zeros + zeros + "\x01"} {
			other(t, two, form("b2", "--BOUNDARY\n\nx"+seam+"y\n--BOUNDARY--"))
		}
	})
	t.Run("a content that looks like headers is content", func(t *testing.T) {
		t.Parallel()
		other(t, form("b1", "--BOUNDARY\n\nA: 1\n\nx\n--BOUNDARY--"), form("b2", "--BOUNDARY\nA: 1\n\nx\n--BOUNDARY--"))
	})
}

// A body that is not of the plain form is compared as bytes, so that another
// boundary is another request.
func TestMultipartThatIsBytes(t *testing.T) {
	t.Parallel()
	for claim, text := range map[string]string{
		"nothing but text":             "x",
		"a preamble":                   "hello\n--BOUNDARY\n\nx\n--BOUNDARY--\n",
		"an epilogue":                  "--BOUNDARY\n\nx\n--BOUNDARY--\nbye",
		"no end":                       "--BOUNDARY\n\nx\n--BOUNDARY\n",
		"an end cut short":             "--BOUNDARY\n\nx\n--BOUNDARY-",
		"no last boundary":             "--BOUNDARY\n\nx\n",
		"a part without an empty line": "--BOUNDARY\nA: 1\n--BOUNDARY--\n",
		"a part without any line":      "--BOUNDARY\n--BOUNDARY--\n",
		"a folded header":              "--BOUNDARY\nA: 1\n  2\n\nx\n--BOUNDARY--\n",
		"a header without a colon":     "--BOUNDARY\nA\n\nx\n--BOUNDARY--\n",
		"a space before the colon":     "--BOUNDARY\nA : 1\n\nx\n--BOUNDARY--\n",
		"a boundary that goes on":      "--BOUNDARY\n\nx\n--BOUNDARYx\n--BOUNDARY--\n",
		"space after a boundary":       "--BOUNDARY \n\nx\n--BOUNDARY--\n",
		"a zero byte in a header":      "--BOUNDARY\nA: \x00\n\nx\n--BOUNDARY--\n",
		"a lone CR in a header":        "--BOUNDARY\nA: 1\rB: 2\n\nx\n--BOUNDARY--\n",
		"33 headers":                   "--BOUNDARY\n" + strings.Repeat("A: 1\n", 33) + "\nx\n--BOUNDARY--\n",
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			same(t, form("b1", text), form("b1", text))
			a, b := form("b1", text), form("b2", text)
			// The type names no boundary that differs, so the bytes decide.
			other(t, a, b)
		})
	}
	long := strings.Repeat("b", 71)
	for claim, c := range map[string]struct{ contentType, boundary string }{
		"no boundary":          {"multipart/form-data", "b1"},
		"an empty boundary":    {`multipart/form-data; boundary=""`, ""},
		"a boundary over 70":   {"multipart/form-data; boundary=" + long, long},
		"an escaped boundary":  {`multipart/form-data; boundary="b\1"`, `b\1`},
		"two boundaries":       {"multipart/form-data; boundary=b1; boundary=b2", "b1"},
		"an unreadable header": {"multipart/form-data boundary=b1", "b1"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			body := string(form(c.boundary, "--BOUNDARY\nA: 1\n\nx\n--BOUNDARY--\n").Body)
			other(t, post(c.contentType, body), post(c.contentType, strings.Replace(body, "A:", "a:", 1)))
		})
	}
}

// TestMultipartAsGoReadsIt holds the splitter against mime/multipart for a
// part of every shape it accepts.
func TestMultipartAsGoReadsIt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"--BOUNDARY\n\nx\n--BOUNDARY--\n",
		"--BOUNDARY\n\n\n--BOUNDARY--",
		"--BOUNDARY\nA: 1\n\n\n--BOUNDARY\nb: 2\n\n\n\n--\n--BOUNDAR\n--BOUNDARY--",
		"--BOUNDARY--",
	} {
		r := form("b1", text)
		same(t, r, rewrite(t, r, "b1", "b2"))
	}
}

// rewrite reads a multipart body with mime/multipart and writes its parts
// again under another boundary.
func rewrite(t testing.TB, r fingerprint.Request, from, to string) fingerprint.Request {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	assert.NoError(t, w.SetBoundary(to))
	for _, p := range goParts(t, r.Body, from) {
		part, err := w.CreatePart(textproto.MIMEHeader(p.header))
		assert.NoError(t, err)
		_, err = part.Write(p.content)
		assert.NoError(t, err)
	}
	assert.NoError(t, w.Close())
	body := out.Bytes()
	if w := bytes.TrimPrefix(body, []byte("\r\n")); bytes.HasPrefix(w, []byte("--"+to+"--")) {
		body = w // the writer begins a form without parts with an empty line
	}
	return post("multipart/form-data; boundary="+to, string(body))
}

type goPart struct {
	header  map[string][]string
	content []byte
}
