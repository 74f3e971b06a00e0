//go:build !unix

package bus

// attempt is nothing: what is here cannot be asked for.
type attempt struct{}

// readHere reads nothing.
func (g *gathered) readHere([]byte) (int, error) { return 0, errNothing }
