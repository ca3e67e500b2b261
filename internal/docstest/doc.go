// Package docstest tries out what the documents print: programs are built and
// run, commands, flags and links are looked up, and tests that a document
// names as proof exist. There is no code in it to import.
package docstest
