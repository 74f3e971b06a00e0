package gate

// bypass is a way around the gate, in a package of methods: imports of the module or the
// standard library, code, and the rules that must find it, empty where all is right.
type bypass struct{ name, rule, imports, code string }

var bypasses = []bypass{
	{"a private vector in an error", "sealed", "fmt engine/protocol", `
func f(v *protocol.Private) error { return fmt.Errorf("the sums are %v", v) }`},
	{"a role in a message", "sealed", "fmt engine/step", `
type role struct { own step.Records; t int }
func (r *role) f() string { return fmt.Sprintf("%+v", r) }`},
	{"records through a field of a field", "sealed", "encoding/json engine/dataset", `
type inner struct{ parts map[string][]dataset.Part }
type role struct { next *role; inner *inner }
func f(r role) ([]byte, error) { return json.Marshal(&r) }`},
	{"an interface whose type holds records", "sealed", "fmt engine/dataset", `
type stepper interface{ step() }
type near struct{ own dataset.Part }
func (n *near) step() {}
func f(s stepper) string { return fmt.Sprint(s) }`},
	{"records encoded by gob", "imports sealed", "encoding/gob io kernels", `
func f(w io.Writer, p *kernels.Panels) error { return gob.NewEncoder(w).Encode(p) }`},
	{"binary encoding of a mask secret", "sealed", "encoding/binary io internal/secret", `
func f(w io.Writer, s secret.Root) error { return binary.Write(w, binary.LittleEndian, s) }`},
	{"a weak pointer to records", "", "fmt weak engine/dataset", `
func f(own *dataset.Part) string { return fmt.Sprint(weak.Make(own)) }`},
	{"records behind a weak pointer", "sealed", "fmt weak engine/dataset", `
func f(own weak.Pointer[dataset.Part]) string { return fmt.Sprint(own.Value()) }`},
	{"records in the details of a result", "sealed", "engine kernels", `
func f(r *engine.Result, p kernels.Panels) { r.Details["points"] = p }`},
	{"sums in details by a literal", "sealed", "kernels", `
func f(a *kernels.Accumulator) map[string]any { return map[string]any{"sums": a} }`},
	{"an any by assignment", "sealed", "engine/privacy", `
func f(s *privacy.Streams) { var x any; x = s; _ = x }`},
	{"an any by a return of a call", "sealed", "engine/protocol", `
func g() (*protocol.Private, error) { return nil, nil }
func f() (any, error) { return g() }`},
	{"an any through a channel", "sealed", "engine/protocol", `
func f(c chan<- any, v *protocol.PrivateReals) { c <- v }`},
	{"a remark with records", "sealed", "engine/protocol engine/step", `
func f(p *protocol.Party, own step.Records) { p.Note("the records are %v", own) }`},
	{"an error of the usual form with records", "sealed", "fmt internal/fault engine/dataset", `
func f(own []dataset.Part) error { return fault.Request("records", fmt.Sprint(own), "none") }`},
	{"a panic with a private vector", "sealed", "engine/protocol", `
func f(v *protocol.Private) { panic(v) }`},
	{"a print", "sealed", "", `
func f(x int64) { println(x) }`},
	{"records that one role hands to others", "sealed", "engine/protocol engine/dataset", `
func f(p *protocol.Party, own *dataset.Part) (*dataset.Part, error) {
	return protocol.Once(p, "own", 0, func() (*dataset.Part, error) { return own, nil })
}`},
	{"a field that shows a private vector", "surface", "engine/protocol", `
type State struct{ Sums []*protocol.Private }`},
	{"a function that returns a private vector", "surface", "engine/protocol", `
func Sums() *protocol.Private { return protocol.NewPrivate(1) }`},
	{"records kept in the package", "surface", "engine/dataset", `
var last dataset.Part`},
	{"records encoded as JSON by their tag", "surface", "engine/dataset",
		"type Out struct{ Rows []dataset.Part `json:\"rows\"` }"},
	{"a message beside the party", "transport", "context engine/protocol", `
func f(ctx context.Context, t protocol.Transport, b []byte) error { return t.Send(ctx, protocol.Server, b) }`},
	{"a masked vector taken off the gate", "transport", "internal/secagg", `
func f(m *secagg.Masked) []byte { return m.AppendSum(nil) }`},
	{"mail beside the transport", "transport", "context engine/protocol", `
func f(ctx context.Context, m protocol.Mail, b []byte) error { return m.Send(ctx, 1, b) }`},
	{"a socket", "imports", "net", `
func f() (net.Conn, error) { return net.Dial("tcp", "localhost:1") }`},
	{"a log", "imports", "log", `
func f(x float64) { log.Print(x) }`},
	{"a message that nobody reviewed", "exits", "context engine/protocol", `
func leak(ctx context.Context, p *protocol.Party, r *protocol.Release, labels []byte) error {
	return p.Send(ctx, r, protocol.Server, labels)
}`},
	{"a mechanism that nobody reviewed", "exits", "engine/protocol", `
func exact(p *protocol.Party, r *protocol.Release) error { return p.Apply(r, 0, func() error { return nil }) }`},
	{"a result that nobody reviewed", "exits", "engine/protocol", `
func result(sums []float64) *protocol.Outcome { return &protocol.Outcome{Centroids: sums} }`},
	{"exact values watched", "views", "engine/protocol", `
func f() protocol.Options { return protocol.Options{Views: &protocol.Views{}} }`},
	{"a slice that is kept", "fill", "engine/protocol", `
func f(v *protocol.Private) (kept []int64, err error) {
	err = v.Fill(func(words []int64) error { kept = words; return nil })
	return kept, err
}`},
	{"a number that is kept", "fill", "engine/protocol", `
type role struct{ total int64 }
func (r *role) f(v *protocol.Private) error {
	return v.Fill(func(words []int64) error {
		for i := range words { words[i]++; x := words[i]; r.total += x }
		return nil
	})
}`},
	{"a number in an error of what fills", "fill", "fmt engine/protocol", `
func f(v *protocol.Private) error {
	return v.Fill(func(words []int64) error { return fmt.Errorf("too many: %d", words[0]) })
}`},
	{"a copy of what is filled", "fill", "engine/protocol", `
func f(v *protocol.Private, out []int64) error {
	return v.Fill(func(words []int64) error { copy(out, words[1:]); return nil })
}`},
	{"a number sent by a function that is called", "fill", "engine/protocol", `
func tell(c chan int64, w []int64) { half := w[:1]; c <- half[0] }
func f(v *protocol.Private, c chan int64) error {
	return v.Fill(func(words []int64) error { tell(c, words); return nil })
}`},
	{"a function that is passed on", "fill", "engine/protocol", `
var last int64
func count(v *protocol.Private, fill func([]int64) error) error { return v.Fill(fill) }
func f(v *protocol.Private) error { return count(v, func(w []int64) error { last = w[0]; return nil }) }`},
	{"what cannot be read", "fill", "engine/protocol", `
func f(v *protocol.Private, fill []func([]int64) error) error { return v.Fill(fill[0]) }`},
	{"all as it should be", "", "context fmt engine/protocol engine/step", `
type role struct { own step.Records; v *protocol.Private; encode func([]int64) error }
func (r *role) write(words []int64) { for i := range words { words[i] += int64(r.own.Part.Points.N) } }
func (r *role) run(ctx context.Context, p *protocol.Party, release *protocol.Release) ([]int64, error) {
	r.encode = func(words []int64) error { r.write(words); return nil }
	if err := r.v.Fill(r.encode); err != nil { return nil, fmt.Errorf("round %d: %w", 1, err) }
	p.Note("%d columns", r.own.Part.Points.D)
	return p.Sum(ctx, release, 0, nil, r.v)
}`},
}
