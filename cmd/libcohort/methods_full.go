//go:build full

package main

import (
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/method"
)

import "C"

// methods are all.
func methods() method.List { return catalog.Methods() }
