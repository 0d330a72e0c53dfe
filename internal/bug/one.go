//go:build oncegate_bugs

package bug

import "os"

// Is reports whether the mistake is to be made.
func Is(b Bug) bool { return os.Getenv(Variable) == string(b) }
