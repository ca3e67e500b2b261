//go:build race

package assert

// RaceDetector is on.
const RaceDetector = true
