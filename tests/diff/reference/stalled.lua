-- SPDX-License-Identifier: Apache-2.0
-- The scripted twin of EMQ.STALLED.CHECK: KEYS active pending dead base, ARGV max_stalled limit.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now), 'LIMIT', 0,
                       ARGV[2])
local recovered, dead = {}, {}
for _, id in ipairs(due) do
    local row = KEYS[4] .. 'job:' .. id
    redis.call('ZREM', KEYS[1], id)
    if redis.call('HINCRBY', row, 'stalled', 1) >= tonumber(ARGV[1]) then
        redis.call('HSET', row, 'state', 'dead', 'last_error', 'stalled')
        redis.call('ZADD', KEYS[3], 0, id)
        redis.call('HINCRBY', KEYS[4] .. 'metrics:failed', 'count', 1)
        dead[#dead + 1] = id
    else
        redis.call('ZADD', KEYS[2], 0, id)
        redis.call('HSET', row, 'state', 'pending')
        recovered[#recovered + 1] = id
    end
end
return {recovered, dead}
