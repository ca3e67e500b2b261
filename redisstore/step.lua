-- One step on one record: writes what it is given if the record is as expected,
-- else returns the record. It knows no rule of Semel's: those are the caller's.
--
-- KEYS  1 the record, 2 the index, 3 the audit log, 4 (tests) a shift of the clock
-- ARGV  1 the latest time to run at, 2 what to do: read, write or remove
--       3 the record's member of the index, 4 what becomes of that: '' nothing,
--       'drop', 'at' the score 5, 'in' so long from now, or '-in' the same
--       below zero
--       6-9 how many there are of: fields that are expected, fields to delete,
--       words of an entry of the audit log, times to write; then
--       the names of the expected fields, their values, the fields to delete,
--       the entry, name and distance from now of each time, name and value of
--       each other field
-- Times are in microseconds.

local time = redis.call('TIME')
local real = time[1] * 1000000 + time[2]
local now = real
if KEYS[4] then
	now = now + (redis.call('GET', KEYS[4]) or 0)
end
local said = string.format('%.0f', now)
local shift = now - real
if real > tonumber(ARGV[1]) then
	return {'late', said, shift}
end

local record = KEYS[1]
local at, n = 9, tonumber(ARGV[6])
local expected = ARGV[2] ~= 'read'
if expected then
	local have = redis.call('HMGET', record, unpack(ARGV, at + 1, at + n))
	for i = 1, n do
		expected = expected and (have[i] or '') == ARGV[at + n + i]
	end
end
if not expected then
	return {'found', said, shift, redis.call('HGETALL', record)}
end
at = at + 2 * n

if ARGV[2] == 'remove' then
	redis.call('UNLINK', record)
else
	local deleted, words, times = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
	local first = at + deleted + words
	for i = first + 2, first + 2 * times, 2 do
		ARGV[i] = ARGV[i] == '0' and said or string.format('%.0f', now + ARGV[i])
	end
	redis.call('HSET', record, unpack(ARGV, first + 1))
	if deleted > 0 then
		redis.call('HDEL', record, unpack(ARGV, at + 1, at + deleted))
	end
	if words > 0 then
		redis.call('XADD', KEYS[3], '*', 'at', said, unpack(ARGV, at + deleted + 1, first))
	end
end
local place, score = ARGV[4], ARGV[5]
if place == 'drop' then
	redis.call('ZREM', KEYS[2], ARGV[3])
elseif place ~= '' then
	if place == 'in' then
		score = string.format('%.0f', now + score)
	elseif place == '-in' then
		score = score == '0' and '-' .. said or string.format('%.0f', -now - score)
	end
	redis.call('ZADD', KEYS[2], score, ARGV[3])
end
return {'written', said, shift}
