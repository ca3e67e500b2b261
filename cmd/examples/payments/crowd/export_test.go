package crowd

import "time"

// Wait makes the shoppers wait for an answer as long as a slow machine may need.
func (c *Crowd) Wait(patience time.Duration) { c.patience = patience }
