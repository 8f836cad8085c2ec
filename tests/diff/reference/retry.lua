-- SPDX-License-Identifier: Apache-2.0
-- The scripted twin of EMQ.FAIL: KEYS active schedule dead row base, ARGV id token delay_ms
-- max_failures error.
local attempts = redis.call('HGET', KEYS[4], 'attempts')
if not attempts then
    return redis.error_reply('EMQSTALE job gone')
end
if attempts ~= ARGV[2] then
    return redis.error_reply('EMQSTALE retry token mismatch')
end
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then
    redis.call('ZREM', KEYS[5] .. 'pending', ARGV[1])
end
redis.call('HSET', KEYS[4], 'last_error', ARGV[5])
if tonumber(attempts) >= tonumber(ARGV[4]) then
    redis.call('HSET', KEYS[4], 'state', 'dead')
    redis.call('ZADD', KEYS[3], 0, ARGV[1])
    redis.call('HINCRBY', KEYS[5] .. 'metrics:failed', 'count', 1)
    return 'dead'
end
local time = redis.call('TIME')
local score = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[3]
redis.call('HSET', KEYS[4], 'state', 'scheduled')
redis.call('ZADD', KEYS[2], string.format('%.0f', score), ARGV[1])
return 'scheduled'
