// Package step has the steps that methods share, each once and with its proof.
package step
