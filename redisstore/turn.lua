-- Takes a turn to sweep, unless somebody has taken one not so long ago.
--
-- KEYS  1 the time of the last turn, 2 (tests) a shift of the clock
-- ARGV  1 for how long a turn lasts, in microseconds

local time = redis.call('TIME')
local real = time[1] * 1000000 + time[2]
local now = real
if KEYS[2] then
	now = now + (redis.call('GET', KEYS[2]) or 0)
end
local said = string.format('%.0f', now)

local last = tonumber(redis.call('GET', KEYS[1]) or '-inf')
if last <= now and now < last + ARGV[1] then
	return {'taken', said, now - real}
end
redis.call('SET', KEYS[1], said)
return {'mine', said, now - real}
