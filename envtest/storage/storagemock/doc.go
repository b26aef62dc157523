// Package storagemock holds the generated mock of storage.Backend, for tests in
// which a real store would hide what is tested. It never stores anything, and only
// tests import it. docs/HACKING.md says how to generate it again.
package storagemock
