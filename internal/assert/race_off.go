//go:build !race

package assert

// RaceDetector is off.
const RaceDetector = false
