package supervise

// PID returns the process id of the child that is up, or zero.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}
