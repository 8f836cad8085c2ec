-- SPDX-License-Identifier: Apache-2.0
-- The scripted twin of EMQ.CLAIM: KEYS pending active base, ARGV lease_ms. The pause flag is the
-- caller's to read.
local popped = redis.call('ZPOPMIN', KEYS[1])
if #popped == 0 then
    return {}
end
local id = popped[1]
local row = KEYS[3] .. 'job:' .. id
local time = redis.call('TIME')
local deadline = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
local attempts = redis.call('HINCRBY', row, 'attempts', 1)
redis.call('HSET', row, 'state', 'active')
redis.call('ZADD', KEYS[2], string.format('%.0f', deadline), id)
return {id, redis.call('HGET', row, 'payload'), attempts}
