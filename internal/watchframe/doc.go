// Package watchframe takes the stream of a watch apart: into frames, one an event,
// in whatever pieces the stream comes, and each frame into the event. Where a frame
// ends and what is in it is decided by upstream's framers and decoders. It never
// looks into the object of an event.
package watchframe
