//go:build race

package integration

// raceDetector is on: see held.
const raceDetector = true
