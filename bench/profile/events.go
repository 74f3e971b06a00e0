package profile

// events is the number of CPU events that are counted: cycles, instructions and
// cache misses.
const events = 3

// Positions of the events.
const (
	Cycles = iota
	Instructions
	CacheMisses
)
