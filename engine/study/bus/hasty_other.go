//go:build !unix

package bus

// attempt is nothing: what is here cannot be asked for.
type attempt struct{}

// read reads from the operating system.
func (g *gathered) read(b []byte) (int, error) { return g.readLater(b) }
