package memnet

// minRingBytes is the first allocation of a ring: enough for an ordinary response.
const minRingBytes = 512

// ring is a first-in first-out byte buffer that grows up to a limit.
type ring struct {
	buf   []byte
	start int // offset of the oldest byte
	n     int // bytes held
	limit int // never more than this many
}

// free is how many bytes can still be written.
func (r *ring) free() int { return r.limit - r.n }

// write takes as much of p as fits and returns how much that was.
func (r *ring) write(p []byte) int {
	p = p[:min(len(p), r.free())]
	if need := r.n + len(p); need > len(r.buf) {
		r.grow(need)
	}
	if len(p) == 0 {
		return 0
	}
	end := r.start + r.n
	if end >= len(r.buf) {
		end -= len(r.buf)
	}
	m := copy(r.buf[end:], p)
	copy(r.buf, p[m:])
	r.n += len(p)
	return len(p)
}

// grow makes room for need bytes, doubling so that a long stream is rarely copied.
func (r *ring) grow(need int) {
	buf := make([]byte, min(max(need, 2*len(r.buf), minRingBytes), r.limit))
	m := copy(buf, r.buf[r.start:min(r.start+r.n, len(r.buf))])
	copy(buf[m:], r.buf[:r.n-m])
	r.buf, r.start = buf, 0
}

// read moves the oldest bytes to p and returns how many.
func (r *ring) read(p []byte) int {
	p = p[:min(len(p), r.n)]
	if len(p) == 0 {
		return 0
	}
	m := copy(p, r.buf[r.start:])
	copy(p[m:], r.buf)
	r.n -= len(p)
	r.start += len(p)
	if r.start >= len(r.buf) {
		r.start -= len(r.buf)
	}
	if r.n == 0 {
		r.start = 0
	}
	return len(p)
}

// front peeks at up to max of the oldest bytes of a ring that was never read.
func (r *ring) front(max int) []byte { return r.buf[:min(max, r.n)] }

// truncate forgets all but the oldest n bytes.
func (r *ring) truncate(n int) { r.n = n }
