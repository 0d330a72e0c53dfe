package redislock

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"

	"github.com/redis/go-redis/v9"
)

//go:embed apply.lua
var applyText string

//go:embed read.lua
var readText string

// A script is known to servers by the SHA-1 of its text.
type script struct{ text, sum string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// A run is one run of a script.
type run struct {
	keys []string
	args []any
	// told is called with what the script returned; it may be called again
	// when the work is done once more.
	told func([]any) error
}

// write makes the runs, and read makes them on a connection that is not
// reserved for writing, all in one pipeline, and once more where a connection
// turns out to be lost. doing is for the error.
func (s *Store) write(ctx context.Context, doing string, of script, runs []run) error {
	return s.call(ctx, doing, func() error {
		f, err := s.following(ctx)
		if err != nil {
			return err
		}
		return s.pipe(ctx, of, runs, f)
	})
}

func (s *Store) read(ctx context.Context, doing string, of script, runs []run) error {
	return s.reading(ctx, doing, func() error { return s.pipe(ctx, of, runs, following{}) })
}

// reading calls f within the bounds for reads.
func (s *Store) reading(ctx context.Context, doing string, f func() error) error {
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	case <-ctx.Done():
		return failed(doing, ctx.Err())
	}
	return s.call(ctx, doing, f)
}

func (s *Store) call(ctx context.Context, doing string, f func() error) error {
	done, err := s.calls.Begin()
	if err != nil {
		return err
	}
	defer done()
	if err := ctx.Err(); err != nil {
		return failed(doing, err)
	}
	err = f()
	if err != nil && lost(err) && ctx.Err() == nil {
		err = f()
	}
	if err != nil {
		return failed(doing, err)
	}
	return nil
}

// pipe sends the runs by the script's sum. Those that meet a server which does
// not know the script, as after a failover, did nothing there and are sent
// again with its text.
func (s *Store) pipe(ctx context.Context, of script, runs []run, f following) error {
	unknown, err := s.pipeAs(ctx, runs, f, func(p redis.Pipeliner, r *run) *redis.Cmd {
		return p.EvalSha(ctx, of.sum, r.keys, r.args...)
	})
	if err != nil || len(unknown) == 0 {
		return err
	}
	_, err = s.pipeAs(ctx, unknown, f, func(p redis.Pipeliner, r *run) *redis.Cmd {
		return p.Eval(ctx, of.text, r.keys, r.args...)
	})
	return err
}

func (s *Store) pipeAs(ctx context.Context, runs []run, f following, queue func(redis.Pipeliner, *run) *redis.Cmd) (unknown []run, err error) {
	groups, err := s.byNode(ctx, runs, f)
	if err != nil {
		return nil, err
	}
	for client, group := range groups {
		more, err := s.pipeTo(ctx, client, group, f, queue)
		if err != nil {
			s.relearn(ctx)
			return nil, err
		}
		unknown = append(unknown, more...)
	}
	return unknown, nil
}

// pipeTo sends one pipeline and hears what came of it.
func (s *Store) pipeTo(
	ctx context.Context, client redis.Cmdable, runs []run, f following, queue func(redis.Pipeliner, *run) *redis.Cmd,
) (unknown []run, err error) {
	p := client.Pipeline()
	commands := make([]*redis.Cmd, len(runs))
	for i := range runs {
		commands[i] = queue(p, &runs[i])
	}
	var followed *redis.Cmd
	if f.replicas > 0 {
		// On the same connection, so it speaks of what went before.
		followed = p.Do(ctx, f.command(waitTime(ctx))...)
	}
	// The error is the first command's that failed; each is looked at below.
	_, whole := p.Exec(ctx)
	for i, c := range commands {
		switch err := c.Err(); {
		case redis.HasErrorPrefix(err, codeNoScript):
			unknown = append(unknown, runs[i])
			continue
		case err != nil:
			return nil, err
		}
		parts, err := c.Slice()
		if err == nil {
			err = runs[i].told(parts)
		}
		if err != nil {
			return nil, err
		}
	}
	if followed != nil && len(unknown) < len(runs) {
		if err := s.followed(followed, f); err != nil {
			return nil, err
		}
	}
	if whole != nil && len(unknown) == 0 && !errors.Is(whole, redis.Nil) {
		return nil, whole
	}
	return unknown, nil
}
