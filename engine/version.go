package engine

// Version is the version of Cohort, as printed by `cohort version` and stored
// in every result.
const Version = "0.1.0"
