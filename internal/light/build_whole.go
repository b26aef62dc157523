//go:build !snowglobe_light

package light

// Build is whether this is a light build.
const Build = false
