package gate

import (
	"go/types"
	"strings"
)

// private are the types of what a release alone may open.
var private = map[string]bool{"engine/protocol.Private": true, "engine/protocol.PrivateReals": true}

// sealed are the types of records, of what is computed from one party's records, and
// of secrets and randomness: never printed, encoded or made an any.
var sealed = map[string]bool{
	"engine/protocol.Private":      true,
	"engine/protocol.PrivateReals": true,
	"engine/protocol.Views":        true,
	"engine/privacy.Replay":        true,
	"engine/privacy.Streams":       true,
	"engine/privacy.Stream":        true,
	"engine/dataset.Part":          true,
	"engine/dataset.Table":         true,
	"engine/dataset.Normalised":    true,
	"engine/dataset.Block":         true,
	"engine/step.Records":          true,
	"engine/step/seeding.Part":     true,
	"kernels.Panels":               true,
	"kernels.Accumulator":          true,
	"internal/secret.Root":         true,
	"internal/secagg.Client":       true,
	"engine/method/ckks.entropy":   true,
	"engine/method/ckks.secretKey": true,
	"engine/method/sketch.Secret":  true,

	"github.com/tuneinsight/lattigo/v6/core/rlwe.SecretKey": true,
}

// nameOf is the name of a defined type: the folder of its package in the module, a
// point, and its name.
func nameOf(t types.Type) string {
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return ""
	}
	return strings.TrimPrefix(n.Obj().Pkg().Path(), module+"/") + "." + n.Obj().Name()
}

// holds tells which sealed type a value of type t holds, or "" for none: fmt
// prints fields that are not exported, so all count. An interface of the module
// holds what a type that implements it holds.
func (p *program) holds(t types.Type) string {
	if found, ok := p.held[types.Unalias(t)]; ok {
		return found
	}
	seen := map[types.Type]bool{}
	found := p.search(t, seen)
	if found != "" {
		p.held[types.Unalias(t)] = found
		return found
	}
	for t := range seen { // what holds nothing leads to nothing that does
		p.held[t] = ""
	}
	return ""
}

// search is holds, but for types that were seen before.
func (p *program) search(t types.Type, seen map[types.Type]bool) string {
	t = types.Unalias(t)
	if found, ok := p.held[t]; ok || seen[t] {
		return found
	}
	seen[t] = true
	var inside []types.Type
	switch u := t.(type) {
	case *types.Named:
		switch name := nameOf(u.Origin()); {
		case sealed[name]:
			return name
		case name == "weak.Pointer": // printed and encoded it is an address
			return ""
		}
		inside = p.within(u)
	case *types.Map:
		inside = []types.Type{u.Key(), u.Elem()}
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		inside = []types.Type{u.Elem()}
	case *types.Struct:
		for f := range u.Fields() {
			inside = append(inside, f.Type())
		}
	}
	for _, t := range inside {
		if found := p.search(t, seen); found != "" {
			return found
		}
	}
	return ""
}

// within is what a value of a defined type is: for an interface of the module the
// types that implement it.
func (p *program) within(n *types.Named) []types.Type {
	i, ok := n.Underlying().(*types.Interface)
	if !ok {
		return []types.Type{n.Underlying()}
	}
	if n.Obj().Pkg() == nil || !strings.HasPrefix(n.Obj().Pkg().Path(), module) || i.NumMethods() == 0 ||
		n.TypeParams().Len() > 0 {
		return nil
	}
	var all []types.Type
	for _, t := range p.named {
		if t.TypeParams().Len() == 0 && !types.IsInterface(t) &&
			(types.Implements(t, i) || types.Implements(types.NewPointer(t), i)) {
			all = append(all, t)
		}
	}
	return all
}

// opens tells whether an interface gives a value to whoever prints or encodes it: any,
// error, and what fmt and the encoders look for.
func opens(t types.Type) bool {
	i, ok := t.Underlying().(*types.Interface)
	if _, parameter := types.Unalias(t).(*types.TypeParam); !ok || parameter {
		return false
	}
	if i.NumMethods() == 0 {
		return i.IsMethodSet()
	}
	for m := range i.Methods() {
		switch m.Name() {
		case "String", "GoString", "Format", "Error", "MarshalJSON", "MarshalText", "MarshalBinary", "GobEncode",
			"AppendText", "AppendBinary":
			return i.NumMethods() == 1
		}
	}
	return false
}
