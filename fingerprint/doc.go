// Package fingerprint decides whether two requests under one key are the same
// request.
//
// It computes two digests of a request. Raw covers what was sent, byte for
// byte. Meaning leaves out what a client may spell differently when it sends
// the same request again: the order of JSON members, white space and escapes,
// a multipart boundary, the case of a media type. Equal raw digests are one
// request; so are equal meanings under one policy (R21). docs/fingerprint.md
// has the rules for users.
//
// Whatever the package does not fully understand it compares as bytes: a
// repeat may then be taken for another request, which is answered with an
// error, but another request is never taken for a repeat.
package fingerprint
