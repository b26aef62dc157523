// Package watchframe splits the stream of a watch into frames, one for each event,
// however the stream is cut into pieces, and decodes the event of a frame. Upstream's
// framers decide where a frame ends. It never decodes the object of an event.
package watchframe
