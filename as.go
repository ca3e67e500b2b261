package semel

// As returns s, or the first store that s wraps, that has the ability T: an
// interface such as [Joiner]. A store that wraps another one to add logging or
// metrics has a method Unwrap() Store, so that it does not hide the abilities
// of the one inside.
func As[T any](s Store) (T, bool) {
	for s != nil {
		if t, ok := s.(T); ok {
			return t, true
		}
		w, ok := s.(interface{ Unwrap() Store })
		if !ok {
			break
		}
		s = w.Unwrap()
	}
	var none T
	return none, false
}
