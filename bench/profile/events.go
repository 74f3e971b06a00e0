package profile

// events is the number of events that are counted: those of the CPU, which many
// virtual machines do not offer, and those of the kernel.
const events = 7

// Positions of the events.
const (
	cycles = iota
	instructions
	cacheMisses
	taskClock // nanoseconds that the threads ran
	pageFaults
	contextSwitches
	migrations // to another core

	hardwareEvents = cacheMisses + 1
)
