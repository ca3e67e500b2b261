// Package semelclient sends requests that move money: once meant, sent as often
// as it takes, with one key and the same bytes each time.
//
//	intent, err := client.Intend(ctx, http.MethodPost, url, header, body)
//	if err != nil {
//		return err // nothing was sent
//	}
//	switch result := client.Do(ctx, intent); result.Outcome {
//	case semelclient.Applied: // it is done: result.Body
//	case semelclient.NotApplied: // it is not, and will not be
//	case semelclient.Unknown: // nobody knows yet; Recover finishes it
//	}
//
// An [Intent] is stored, on disk with [FileStore] or [SQLStore], before its first
// byte leaves. A process that dies between sending and receiving finds it again
// and asks the service with the same key: [Client.Recover].
//
// What it promises, of a service that keeps its side of
// draft-ietf-httpapi-idempotency-key-header:
//
//   - Every attempt of an intent has the same key, target and body, byte for byte,
//     also in another process and after a crash.
//   - Applied and NotApplied are said only of what is known. No reply, or one that
//     does not tell, is Unknown, which is a value and never an error: an error
//     invites a new key, and a new key is a second payment.
//   - NotApplied is said once the intent is closed, durably: it is never sent
//     again.
//   - An intent older than the service keeps its keys is not sent again.
//   - The attempts it reports are those that were written to a connection. Go's
//     transport, which sends a request with a key again by itself, is kept from it.
//
// What it does not: a service that ignores keys executes each attempt.
// docs/client.md says how to find out, and the rules in full.
package semelclient
