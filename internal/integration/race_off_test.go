//go:build !race

package integration

// raceDetector is off: see held.
const raceDetector = false
