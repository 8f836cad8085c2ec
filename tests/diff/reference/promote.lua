-- SPDX-License-Identifier: Apache-2.0
-- The scripted twin of EMQ.PROMOTE: KEYS schedule pending base, ARGV limit.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now), 'LIMIT', 0,
                       ARGV[1])
for _, id in ipairs(due) do
    redis.call('ZREM', KEYS[1], id)
    redis.call('ZADD', KEYS[2], 0, id)
    redis.call('HSET', KEYS[3] .. 'job:' .. id, 'state', 'pending')
end
return #due
