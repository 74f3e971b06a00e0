// Package engine runs private clustering jobs: every party and the server in
// one process, on a fixed pool of workers.
//
// An [Engine] owns the [Pool]. A [Job] is a plain struct of a protocol package
// (engine/method/lloyd, engine/method/sketch, engine/method/hybrid), whose zero fields mean
// the documented defaults. [Engine.Run] validates it, hands it a [Runtime] and
// returns a [Result]: centroids in the data's own units, the privacy ledger,
// the latency of each phase, communication, and quality.
//
// An [Observer] sees jobs, phases and iterations as they happen; progress bars,
// profiles and traces are observers.
package engine
