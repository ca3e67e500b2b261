package fingerprint

import "github.com/semel-dev/semel"

// Set is the policy in force with the older ones that records may still
// carry. While two configurations are deployed at once, each process lists the
// other's.
type Set struct {
	current *Policy
	byID    map[string]*Policy
}

// NewSet returns the set of current and older configurations. Errors match
// semel.ErrConfig.
func NewSet(current Config, older ...Config) (*Set, error) {
	policy, err := New(current)
	if err != nil {
		return nil, err
	}
	s := &Set{current: policy, byID: map[string]*Policy{policy.id: policy}}
	for _, cfg := range older {
		policy, err := New(cfg)
		if err != nil {
			return nil, err
		}
		s.byID[policy.id] = policy
	}
	return s, nil
}

// ID returns the id of the policy in force.
func (s *Set) ID() string { return s.current.id }

// Of returns the fingerprint of r under the policy in force.
func (s *Set) Of(r Request) semel.Fingerprint { return s.current.Of(r) }

// Refingerprint returns the fingerprint of r under the policy that a record
// was saved with, or false if that policy is not loaded. It is the substance
// of semel.Call.Refingerprint.
func (s *Set) Refingerprint(r Request, policy string) (semel.Fingerprint, bool) {
	p, ok := s.byID[policy]
	if !ok {
		return semel.Fingerprint{}, false
	}
	return p.Of(r), true
}
