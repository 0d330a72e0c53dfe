// Package oracle checks oncegate's signature schemes against the providers' own
// SDKs: what oncegate signs, the SDK has to accept; what the SDK signs or
// builds, oncegate has to accept; and what is changed by one bit, neither may.
//
// It is a module of its own, so that some thirty SDKs are no part of the
// program. SDKs for Go are linked into the tests; those that exist for Node
// alone are asked by a small program in the folder node, whose packages are
// installed by `npm ci` where they are missing.
package oracle
