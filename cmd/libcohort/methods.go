//go:build !full

package main

import (
	"github.com/cohort-engine/cohort/engine/catalog/standard"
	"github.com/cohort-engine/cohort/engine/method"
)

import "C"

// methods are those that need no library for homomorphic encryption.
func methods() method.List { return standard.Methods() }
