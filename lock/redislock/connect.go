package redislock

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var errURL = errors.New("redis: the url can't be read: it must look like redis://user:password@host:6379/0 " +
	"(or rediss, redis+cluster, redis+sentinel), with special characters percent-encoded and known parameters only")

// answerTime bounds how long an answer may take where the call's context does
// not.
const answerTime = 10 * time.Second

// newClient reads the options. What the library says of a URL may hold the
// password, so it is left out. All clients are told to send nothing again by
// themselves, and to end with the call's context.
func newClient(o *Options) (redis.UniversalClient, error) {
	scheme, rest, _ := strings.Cut(o.URL, "://")
	scheme, kind, _ := strings.Cut(scheme, "+")
	url := scheme + "://" + rest
	switch kind {
	case "":
		return newSingle(o, url)
	case "cluster":
		return newCluster(o, url)
	case "sentinel":
		return newSentinel(o, url)
	}
	return nil, errURL
}

func newSingle(o *Options, url string) (redis.UniversalClient, error) {
	c, err := redis.ParseURL(url)
	if err != nil {
		return nil, errURL
	}
	c.MaxRetries, c.ContextTimeoutEnabled = -1, true
	c.ReadTimeout, c.WriteTimeout = answerTime, answerTime
	c.PoolSize, c.DialerRetries, c.DisableIdentity = o.Pool, 1, true
	c.CredentialsProviderContext = credentials(o, c.Username)
	if o.TLS != nil {
		c.TLSConfig = o.TLS
	}
	return redis.NewClient(c), nil
}

func newCluster(o *Options, url string) (redis.UniversalClient, error) {
	c, err := redis.ParseClusterURL(url)
	if err != nil {
		return nil, errURL
	}
	c.MaxRetries, c.ContextTimeoutEnabled = -1, true
	c.ReadTimeout, c.WriteTimeout = answerTime, answerTime
	c.PoolSize, c.DialerRetries, c.DisableIdentity = o.Pool, 1, true
	c.CredentialsProviderContext = credentials(o, c.Username)
	if o.TLS != nil {
		c.TLSConfig = o.TLS
	}
	return redis.NewClusterClient(c), nil
}

func newSentinel(o *Options, url string) (redis.UniversalClient, error) {
	c, err := redis.ParseFailoverURL(url)
	if err != nil || c.MasterName == "" {
		return nil, errURL
	}
	c.MaxRetries, c.ContextTimeoutEnabled = -1, true
	c.ReadTimeout, c.WriteTimeout = answerTime, answerTime
	c.PoolSize, c.DialerRetries, c.DisableIdentity = o.Pool, 1, true
	c.CredentialsProviderContext = credentials(o, c.Username)
	if o.TLS != nil {
		c.TLSConfig = o.TLS
	}
	return redis.NewFailoverClient(c), nil
}

// credentials is nil where the URL says all.
func credentials(o *Options, user string) func(context.Context) (string, string, error) {
	if o.Password == nil {
		return nil
	}
	return func(ctx context.Context) (string, string, error) {
		password, err := o.Password(ctx)
		return user, password, err
	}
}
