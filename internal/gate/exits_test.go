package gate

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// exits are the functions in which numbers leave a role beside the releases
// themselves, by what they call. A function that is not listed here may not.
var exits = map[string]map[string]string{
	// Bytes to another role. Party.Send takes the release that they belong to.
	"Send": {
		"client.report":     "what Party.Own released: the exact sums of Thesis-H 5.2",
		"Plan.sendStart":    "first centroids that the server draws without records",
		"client.seed":       "centroids that Party.Sum released",
		"naiveServer.run":   "centroids made of what clients sent it",
		"party.play":        "the noisy number of records; plain k-means: memberships, an exact release that the view names",
		"server.giveBack":   "a result made of the cells that keys draw, with noise (THEOREMS.md T16)",
		"party.sendMessage": "centres and sizes from releases, and sketches from Party.Apply",
		"party.sendReports": "reports from Party.Apply",
		"plan.ofColumns":    "bounds chosen from noisy counts of magnitudes, by Party.Own",
		"peer.send":         "ciphertexts, keys, public terms, and centroids made of what Party.Open released",
	},
	// Mechanisms of a method's own.
	"Apply": {
		"party.releaseSketches": "sketches with phantoms (THEOREMS.md T3)",
		"party.sendReports":     "randomised response of each record",
	},
	// What a run ends with: each role of the audience has it from releases.
	"Outcome": {
		"client.run":    "centroids and sizes from Party.Sum",
		"Party.Outcome": "post-processing of Party.Sum",
		"edlerRun.run":  "post-processing of Party.OwnReals and Choose",
		"Job.plan":      "pca: exact centroids that Party.OwnReals released: plain k-means",
		"plan.client":   "a noisy number of records, by Party.Sum",
		"plan.ofRows":   "bounds chosen from noisy counts of magnitudes, by Party.Sum",
		"plan.gather":   "bounds that parties chose from noisy counts of magnitudes",
		"run.outcome":   "what the server makes of messages, or of the cells that keys draw, with noise",
		"peer.outcome":  "centroids made of what Party.Open released",
	},
}

// transports are the types of messages between roles and of masked vectors: only
// engine/protocol calls their methods.
var transports = map[string]bool{
	"engine/protocol.Transport": true,
	"engine/protocol.Mail":      true,
	"internal/secagg.Masked":    true,
	"internal/secagg.Client":    true,
}

// exits looks at who calls what lets numbers out.
func (w *walk) exits(n *ast.CallExpr, fun ast.Expr) {
	f, receiver := w.method(fun)
	if f == nil {
		return
	}
	switch name := f.Name(); {
	// which is a transport
	case transports[receiver] && !strings.HasPrefix(w.name, "engine/protocol") && w.name != "internal/secagg" &&
		w.name != "engine/study":
		w.report("transport", n.Pos(), "%s calls %s.%s: parties meet in Party.Sum, Send and Receive", w.within,
			receiver, name)
	case receiver == "engine/protocol.Party" && exits[name] != nil:
		w.exit(name, n.Pos())
	case receiver == "engine/protocol.Private" && name == "Fill":
		w.fill(n)
	}
}

// method is the method that is called, and the type that declares it.
func (w *walk) method(fun ast.Expr) (*types.Func, string) {
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return nil, ""
	}
	f, ok := w.info.Uses[sel.Sel].(*types.Func)
	if !ok || f.Signature().Recv() == nil {
		return nil, ""
	}
	t := f.Signature().Recv().Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	return f, nameOf(t)
}

// exit notes that a function lets numbers out.
func (w *walk) exit(kind string, pos token.Pos) {
	if w.name == "engine/protocol" {
		return
	}
	key := kind + " " + w.within
	if exits[kind][w.within] == "" {
		w.report("exits", pos, "%s lets numbers out by %s and is not listed in exits (%s): say there why they are released",
			w.within, kind, key)
	}
	w.exitsHit[key] = true
}
