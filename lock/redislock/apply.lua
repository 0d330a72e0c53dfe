-- Makes one change, if what it expects holds.
-- KEYS: the record, the set of open records.
-- ARGV: 1 expected version, 2 next version, 3 state (a byte), 4 lease, 5 runs
-- until, 6 due, 7 expiry (offsets in microseconds; '' for none of the last
-- two), 8 '1' if a delivery caused it, 9 '1' if it leaves the record open,
-- 10 the rest of the value, 11 '1' if replicas are waited for.
-- Returns 1, first seen, last seen (ages) if the change was made; else 0, now,
-- the value that stands, '' for none.
local none = string.rep('\0', 16)
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local head = redis.call('GETRANGE', KEYS[1], 0, 73)
local stands, first, last = none, now, now
if #head > 0 then
	if #head < 74 or string.byte(head) ~= 1 then
		return redis.error_reply('UNFIT a record is not in a form that this release knows')
	end
	stands = string.sub(head, 2, 17)
	if stands == ARGV[2] then
		local value = redis.call('GET', KEYS[1])
		if ARGV[11] == '1' then
			-- Replicas are waited for up to what this connection has written last, so
			-- that is written once more: it may have been another that wrote it first.
			redis.call('SET', KEYS[1], value, 'KEEPTTL')
		end
		return {0, now, value}
	end
	local _, _, _, expires, f, l = struct.unpack('<dddddd', head, 19)
	if expires ~= 0 and expires <= now then
		stands = none
	else
		first, last = f, l
	end
end
if stands ~= ARGV[1] then
	if stands == none then
		return {0, now, ''}
	end
	return {0, now, redis.call('GET', KEYS[1])}
end
if ARGV[8] == '1' then
	last = now
end
local due, expires = 0, 0
if ARGV[6] ~= '' then
	due = now + ARGV[6]
end
if ARGV[7] ~= '' then
	expires = now + ARGV[7]
end
local value = '\1' .. ARGV[2] .. ARGV[3] ..
	struct.pack('<ddddddd', now + ARGV[4], now + ARGV[5], due, expires, first, last, now) .. ARGV[10]
if expires == 0 then
	redis.call('SET', KEYS[1], value)
else
	-- Longer than it is there: what expires is judged by its value. By up to a
	-- 64th, at random: what was claimed in one rush is not to leave in one, for
	-- which Redis holds up all others.
	local stays = math.max(ARGV[7] / 1000, 0)
	local a, b = string.byte(ARGV[2], 15, 16)
	stays = stays + stays / 64 * (a * 256 + b) / 65535 + 1000
	redis.call('SET', KEYS[1], value, 'PX', string.format('%.0f', stays))
end
if ARGV[9] == '1' then
	redis.call('SADD', KEYS[2], KEYS[1])
else
	redis.call('SREM', KEYS[2], KEYS[1])
end
return {1, now - first, now - last}
