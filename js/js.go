// Package js is Semel for the browser: semel.js, an ES module that needs no build
// step and nothing else, for a Go service to serve with its own pages.
//
//	http.Handle("GET /semel.js", http.FileServerFS(js.Files()))
//
// What a page sends through it takes effect once, however often a person clicks,
// reloads, goes back or loses the network: the key is kept in the tab before the
// first byte leaves, and what each answer means is what it means to package
// semelclient, whose cases (semelclient/testdata/outcomes.json) both are held
// against. What it does not promise, and how a page uses it, is in docs/browser.md.
package js

import (
	"embed"
	"io/fs"
)

//go:embed semel.js
var files embed.FS

// Files returns the files that a page loads: semel.js, and no other.
func Files() fs.FS { return files }
