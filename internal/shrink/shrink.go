// Package shrink owns delta debugging: which parts of something to take away, one after
// another, until none can be spared. It never knows what they are parts of.
package shrink

// Part is a part of something that has a length: from one position up to another.
type Part struct{ From, To int }

// Remove takes parts away from something of a length: larger ones first, and from the end,
// since what comes late is often needed least. take is given parts, takes the first of them
// away without which the rest will do, and returns its number, or -1 if there is none.
func Remove(length int, take func([]Part) (int, error)) error {
	for size := (length + 1) / 2; size >= 1 && length > 0; {
		var parts []Part
		for to := length; to > 0; to -= size {
			parts = append(parts, Part{max(0, to-size), to})
		}
		taken, err := take(parts)
		switch {
		case err != nil:
			return err
		case taken >= 0:
			length -= parts[taken].To - parts[taken].From
			size = min(size, (length+1)/2)
		case size == 1:
			return nil
		default:
			size = (size + 1) / 2
		}
	}
	return nil
}
