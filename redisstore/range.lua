-- One page of a bucket's index, members and scores in turn.
--
-- KEYS  1 the index, 2 (tests) a shift of the clock
-- ARGV  1 what is asked for: expired, or kept and not expired, both those to
--       expire first at first; or open, from the score 4 down, those started
--       first at first
--       2 how many to pass over, 3 the most to return

local time = redis.call('TIME')
local real = time[1] * 1000000 + time[2]
local now = real
if KEYS[2] then
	now = now + (redis.call('GET', KEYS[2]) or 0)
end
local said = string.format('%.0f', now)

local page
if ARGV[1] == 'expired' then
	page = redis.call('ZRANGEBYSCORE', KEYS[1], 0, said, 'WITHSCORES', 'LIMIT', ARGV[2], ARGV[3])
elseif ARGV[1] == 'kept' then
	page = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. said, '+inf', 'WITHSCORES', 'LIMIT', ARGV[2], ARGV[3])
else
	page = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[4], '-inf', 'WITHSCORES', 'LIMIT', ARGV[2], ARGV[3])
end
return {'page', said, now - real, page}
