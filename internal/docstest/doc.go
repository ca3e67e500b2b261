// Package docstest tries out what the documents print: programs are built and
// run, sessions are typed against a running demo, commands, flags and links are
// looked up, and tests that a document names as proof exist. The common mistakes
// are made here, one by one. There is no code in it to import.
package docstest
