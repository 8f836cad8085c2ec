-- SPDX-License-Identifier: Apache-2.0
-- The scripted twin of EMQ.DELAY: KEYS row active schedule, ARGV id token mode ms.
if ARGV[1]:sub(1, 3) ~= 'JOB' then
    return redis.error_reply('EMQKIND job id must be JOB-namespaced')
end
local attempts = redis.call('HGET', KEYS[1], 'attempts')
if not attempts then
    return redis.error_reply('EMQSTALE job gone')
end
if attempts ~= ARGV[2] then
    return redis.error_reply('EMQSTALE delay token mismatch')
end
local score = tonumber(ARGV[4])
if ARGV[3] == 'in' then
    local time = redis.call('TIME')
    score = score + time[1] * 1000 + math.floor(time[2] / 1000)
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[1], 'state', 'scheduled')
redis.call('ZADD', KEYS[3], string.format('%.0f', score), ARGV[1])
return 1
