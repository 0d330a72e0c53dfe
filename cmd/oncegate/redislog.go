package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// redisLog takes what the Redis library remarks, which it can tell one logger of
// the process alone. What fails comes back as an error and is said there, so its
// remarks are for those who look closely.
type redisLog struct{ log *slog.Logger }

// Printf implements what redis.SetLogger asks for.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.DebugContext(ctx, "the Redis client remarks", "remark", fmt.Sprintf(format, v...))
}

// silenceRedis keeps the library from writing lines of its own among what a
// command prints.
func silenceRedis() { redis.SetLogger(redisLog{slog.New(slog.DiscardHandler)}) }
