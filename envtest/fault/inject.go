package fault

// Inject adds the rule of a text, such as "freeze cache/configmaps", behind those
// that are there. Remove of the entry takes it out again.
func (s *Set) Inject(rule string) (*Entry, error) {
	parsed, err := Parse(rule, s.names())
	if err != nil {
		return nil, err
	}
	added, err := s.Add(parsed)
	if err != nil {
		return nil, err
	}
	return added[0], nil
}
