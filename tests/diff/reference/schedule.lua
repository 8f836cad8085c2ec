-- SPDX-License-Identifier: Apache-2.0
-- The scripted twin of EMQ.SCHEDULE: KEYS row schedule, ARGV id payload mode ms.
if ARGV[1]:sub(1, 3) ~= 'JOB' then
    return redis.error_reply('EMQKIND job id must be JOB-namespaced')
end
if redis.call('EXISTS', KEYS[1]) ~= 0 then
    return 0
end
local score = tonumber(ARGV[4])
if ARGV[3] == 'in' then
    local time = redis.call('TIME')
    score = score + time[1] * 1000 + math.floor(time[2] / 1000)
end
redis.call('HSET', KEYS[1], 'state', 'scheduled', 'attempts', '0', 'payload', ARGV[2])
redis.call('ZADD', KEYS[2], string.format('%.0f', score), ARGV[1])
return 1
