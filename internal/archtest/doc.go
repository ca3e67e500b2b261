// Package archtest holds the rules of this repository's shape as tests:
// imports run only downward, the library's module stays light, the exported
// surface changes only on purpose, and the habits of CONTRIBUTING.md are kept.
// There is no code in it to import.
package archtest
