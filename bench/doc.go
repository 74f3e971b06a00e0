// Package bench measures the engine: performance suites, and the tables and
// figures of the papers whose protocols it runs, with their published numbers
// beside ours.
//
// A [Suite] declares what it measures and makes rows; a [Row] is one instance
// with its values, intervals, repetitions and references. [Run] runs suites,
// appends finished rows to a JSON-lines file, skips those that are there
// already, and a [Report] shows rows as text, CSV, JSON lines or one HTML page.
//
// Timings: the code under test is warmed up and then repeated; medians and 99th
// percentiles are reported, and things that are compared take turns within one
// process. The noise floor is what the same method says about a piece of code
// compared with itself.
package bench
