package redislock

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var errURL = errors.New("redis: the url can't be read: it must look like redis://user:password@host:6379/0 " +
	"(or rediss, redis+cluster, redis+sentinel with ?master_name=...), with special characters percent-encoded and known parameters only")

// answerTime bounds how long an answer may take where the call's context does
// not.
const answerTime = 10 * time.Second

// newClient reads the options. What the library says of a URL may hold the
// password, so it is left out.
func newClient(o *Options) (redis.UniversalClient, error) {
	scheme, rest, _ := strings.Cut(o.URL, "://")
	scheme, kind, _ := strings.Cut(scheme, "+")
	url := scheme + "://" + rest
	switch kind {
	case "":
		c, err := redis.ParseURL(url)
		if err != nil {
			return nil, errURL
		}
		o.setUp(common{&c.MaxRetries, &c.DialerRetries, &c.PoolSize, &c.ContextTimeoutEnabled, &c.DisableIdentity,
			&c.ReadTimeout, &c.WriteTimeout, &c.CredentialsProviderContext, &c.TLSConfig}, c.Username)
		return redis.NewClient(c), nil
	case "cluster":
		c, err := redis.ParseClusterURL(url)
		if err != nil {
			return nil, errURL
		}
		o.setUp(common{&c.MaxRetries, &c.DialerRetries, &c.PoolSize, &c.ContextTimeoutEnabled, &c.DisableIdentity,
			&c.ReadTimeout, &c.WriteTimeout, &c.CredentialsProviderContext, &c.TLSConfig}, c.Username)
		return redis.NewClusterClient(c), nil
	case "sentinel":
		c, err := redis.ParseFailoverURL(url)
		if err != nil || c.MasterName == "" {
			return nil, errURL
		}
		o.setUp(common{&c.MaxRetries, &c.DialerRetries, &c.PoolSize, &c.ContextTimeoutEnabled, &c.DisableIdentity,
			&c.ReadTimeout, &c.WriteTimeout, &c.CredentialsProviderContext, &c.TLSConfig}, c.Username)
		return redis.NewFailoverClient(c), nil
	}
	return nil, errURL
}

// common are the options that the library's three clients share, in structs that
// share nothing.
type common struct {
	retries, dialRetries, pool *int
	contextTimeout, anonymous  *bool
	readTimeout, writeTimeout  *time.Duration
	credentials                *func(context.Context) (string, string, error)
	tls                        **tls.Config
}

// setUp tells a client to send nothing again by itself, and to end with the call's
// context, beside what the options say.
func (o *Options) setUp(c common, user string) {
	*c.retries, *c.dialRetries, *c.pool = -1, 1, o.Pool
	*c.contextTimeout, *c.anonymous = true, true
	*c.readTimeout, *c.writeTimeout = answerTime, answerTime
	*c.credentials = credentials(o, user)
	if o.TLS != nil {
		*c.tls = o.TLS
	}
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
