package forward

import "errors"

func newFastCGI(u Upstream, o Options) (App, error) { return nil, errors.New("todo") }
