package payments

// Short is the beginning of an id, for people.
func Short(id string) string { return id[:min(len(id), 8)] }
