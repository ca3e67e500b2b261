//go:build unix

package services

// PortTaken is what makes a new server look for another port.
var PortTaken = portTaken
