-- Returns now and the value under KEYS[1], '' for none.
local t = redis.call('TIME')
return {t[1] * 1000000 + t[2], redis.call('GET', KEYS[1]) or ''}
