// Package caller tells by client certificates who calls a fake, and whether to trust them.
package caller
