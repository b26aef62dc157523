// Package watchframe splits the stream of a watch into frames, one for each event,
// however the stream is cut into pieces, and decodes the event of a frame. A frame ends where
// upstream's framers end it. It never decodes the object of an event.
package watchframe
