// Package catalog lists every method by name. The command line with its help and
// completion, the benchmarks, the audits and other interfaces read it. A new
// method is a package of its own that describes itself (engine/method) and one
// line here, or in engine/catalog/standard, which has the methods that need no
// library for homomorphic encryption.
package catalog

import (
	"slices"

	"github.com/cohort-engine/cohort/engine/catalog/standard"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/method/ckks"
)

// Methods lists every method.
func Methods() method.List { return slices.Concat(standard.Methods(), ckks.Describe()) }
