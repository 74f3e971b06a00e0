// Package wholefile reads files whole, of a stated number of bytes at most: a device, or a file that is given in the
// place of another, must not fill the memory.
package wholefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrLarge is what errors of files that are too large wrap.
var ErrLarge = errors.New("is too large")

// PEM is the most bytes of a file of certificates, or of their key.
const PEM = 1 << 20

// Read returns the bytes of a file, of which there are at most so many. Errors name the file once, as the system's do.
func Read(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(b)) > most {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: it has more than %d bytes", ErrLarge, most)}
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}
