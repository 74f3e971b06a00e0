// Package profile shows where the time of a job goes: phase by phase, iteration
// by iteration, worker by worker.
//
// A [Profiler] is an observer of the engine that records every span and every
// stay of a worker in a parallel region. It makes latency tables, a text
// timeline of one iteration, and Chrome trace events; it can set pprof labels
// (phase, client, iteration), open runtime/trace regions and read the CPU's
// counters around each phase.
//
// Recording a span takes well under a microsecond, so that iterations of a
// millisecond and more are slowed by less than 1%. Labels, trace regions and
// counters cost more and are off unless asked for.
package profile
