package operator

import (
	"context"
	"time"

	"oncegate/lock"
)

// texts are the event keys of the claims that words are about, as they are before
// a decision takes them away. Without guards nothing else holds them.
func (d *Desk) texts(ctx context.Context, words []lock.Word) (map[lock.Key]string, error) {
	var keys []lock.Key
	for i := range words {
		if w := &words[i]; w.Verb == lock.VerbForget && d.scope(w.Key.Scope).Guarded {
			keys = append(keys, w.Key)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	records, err := d.Store.Read(ctx, keys)
	if err != nil {
		return nil, err
	}
	texts := make(map[lock.Key]string, len(keys))
	for i := range records {
		if records[i].Text != "" {
			texts[keys[i]] = records[i].Text
		}
	}
	return texts, nil
}

// guardTime bounds the search for an event's second keys, for which a store may have
// to look through the whole scope.
const guardTime = time.Minute

// forgetGuards removes the second keys of an event that was forgotten, which hold
// its event key.
func (d *Desk) forgetGuards(ctx context.Context, key lock.Key, text string) error {
	ctx, cancel := context.WithTimeout(ctx, guardTime)
	defer cancel()
	filter := lock.Filter{Namespace: key.Namespace, Scope: key.Scope, TextPart: text}
	for after := (lock.Cursor{}); ; {
		found, err := d.Catalog.List(ctx, filter, after, listPage)
		if err != nil {
			return err
		}
		for i := range found {
			r := &found[i]
			after = lock.Cursor{Scope: r.Scope, Digest: r.Digest}
			if r.Role != lock.RoleAlias || r.Names != key.Digest {
				continue
			}
			// A store removes what its retention is over for.
			next := *r
			next.Version, next.Text, next.Retain = lock.NewVersion(), "", time.Millisecond
			results, err := d.Store.Apply(ctx, []lock.Change{{Expect: r.Version, Next: next}})
			if err != nil {
				return err
			}
			if results[0].Err != nil {
				return results[0].Err
			}
		}
		if len(found) < listPage {
			return nil
		}
	}
}
