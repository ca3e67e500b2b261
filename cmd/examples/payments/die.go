package payments

import "os"

// Die is SIGKILL for this process, for the faults that kill one: nothing is
// flushed, closed or undone.
func Die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		self.Kill()
	}
	select {} // the signal is on its way; nothing may happen any more
}
