module github.com/cohort-engine/cohort/engine/privacy/_google

go 1.26.0

replace github.com/cohort-engine/cohort => ../../..

require (
	github.com/cohort-engine/cohort v0.0.0
	github.com/google/differential-privacy/go/v3 v3.0.0
	gonum.org/v1/gonum v0.17.0
)

require (
	github.com/golang/glog v1.2.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
