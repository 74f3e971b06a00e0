// Package standard lists the methods that need no library for homomorphic
// encryption, for programs that are not to be linked with one.
package standard

import (
	"slices"

	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/method/balcan"
	"github.com/cohort-engine/cohort/engine/method/eugkm"
	"github.com/cohort-engine/cohort/engine/method/evolve"
	"github.com/cohort-engine/cohort/engine/method/hybrid"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/method/lsf"
	"github.com/cohort-engine/cohort/engine/method/pca"
	"github.com/cohort-engine/cohort/engine/method/sketch"
)

// Default is the method that is used where none is named.
func Default(private bool) string {
	if private {
		return "hybrid"
	}
	return "lloyd"
}

// Methods lists the methods.
func Methods() method.List {
	return slices.Concat(lloyd.Describe(), hybrid.Describe(), balcan.Describe(), lsf.Describe(), eugkm.Describe(),
		evolve.Describe(), pca.Describe(), sketch.Describe())
}
