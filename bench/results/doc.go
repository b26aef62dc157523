// Package results is what was measured, and how it is told: as tables, JSON and Go benchmark lines, as
// pages with plots, and beside older results. It measures nothing, and so needs no API server.
package results
