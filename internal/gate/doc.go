// Package gate holds one test: it reads the source of the module and fails where
// numbers computed from records could leave a party other than by a release of the
// plan (engine/protocol).
package gate
