// Package keyextract reads the event key, and other named values, out of a
// delivery.
package keyextract
