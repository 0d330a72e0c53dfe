// Package config turns a file, the environment and flags into the one value that
// oncegate runs by.
//
// # From text to Config
//
// [Load] reads the YAML file strictly, puts environment and flags over its top
// level, takes what a route leaves open from its preset, then from the top
// level, then from defaults.yaml, compiles signature schemes and key rules, and
// checks the rules between fields. It returns either a complete [Config] or
// every fault there is, each with file, line and field; never half of each. A
// Config is not changed afterwards: whoever wants another one loads it and
// swaps the pointer. A [Watcher] does so when files change.
//
// # Variables and secrets
//
// ${NAME} in a value stands for a variable: of the process's environment first,
// then of the file that --env-file names, which is read as Laravel reads it.
// Within a URL the variable's text is escaped for the place where it stands, so
// that a password may hold any character. An unset or empty variable is a fault:
// nothing may fail open because a variable was forgotten.
//
// Where a secret is wanted, file:/path stands for that file's content without
// one trailing newline.
//
// No secret is ever part of a fault, or of what a Config prints.
//
// # Adding a field
//
// Add it to the struct in file.go with its tags and a comment: the comment is
// its row in docs/config.md, and a test holds the two together. Its built-in
// value, if it has one, goes into defaults.yaml. Checks on the field alone
// belong into check.go's table of its level; checks between fields beside them.
package config
