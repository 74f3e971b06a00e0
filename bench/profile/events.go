package profile

// events is the number of events that are counted: those of the CPU, which many
// virtual machines do not offer, and those of the kernel.
const events = 7

// Positions of the events.
const (
	Cycles = iota
	Instructions
	CacheMisses
	TaskClock // nanoseconds that the threads ran
	PageFaults
	ContextSwitches
	Migrations // to another core

	hardwareEvents = CacheMisses + 1
)
