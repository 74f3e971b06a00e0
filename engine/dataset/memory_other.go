//go:build !unix

package dataset

// mapMemory returns zeroed memory on a page boundary.
func mapMemory(bytes int) ([]byte, error) {
	const page = 4096
	memory := make([]byte, bytes+page)
	skip := -addressOf(memory) & (page - 1)
	return memory[skip : int(skip)+bytes], nil
}

func unmapMemory([]byte) {}
