package request

import (
	"testing"

	"github.com/cohort-engine/cohort/internal/fault"
)

// FuzzParse reads options of any program: they are refused in the usual form, or say what a fit can be asked for.
func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add(`{"k": 8, "epsilon": 1, "lower": [0], "upper": [100]}`)
	f.Add(`{"k":2,"settings":{"init":"sphere","n-init":3,"ordered":true},"holders":"columns","parties":[[0],[1]]}`)
	f.Add(`{"k":2,"ledger":{"path":"a","epsilon":1,"delta":1e-6,"composition":"zcdp"}}`)
	f.Add(`{"k":1e99}`)
	f.Add(`{"epsilon":null}{}`)
	f.Fuzz(func(t *testing.T, text string) {
		o, err := Parse(text)
		if err != nil {
			if !fault.IsRequest(err) {
				t.Fatalf("refused as %v", err)
			}
			return
		}
		if o.Epsilon != nil && !(*o.Epsilon > 0) {
			t.Fatalf("epsilon %g", *o.Epsilon)
		}
		if o.Ledger != nil && o.Ledger.KeyFile == "" {
			if _, err := o.account(); err != nil && !fault.IsRequest(err) {
				t.Fatalf("refused as %v", err)
			}
		}
	})
}
