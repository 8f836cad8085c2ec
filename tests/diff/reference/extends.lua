-- SPDX-License-Identifier: Apache-2.0
-- The scripted twin of EMQ.EXTENDS: KEYS active base, ARGV lease_ms (id token)...
local time = redis.call('TIME')
local deadline = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
local refused = {}
for i = 2, #ARGV, 2 do
    if redis.call('HGET', KEYS[2] .. 'job:' .. ARGV[i], 'attempts') == ARGV[i + 1] then
        redis.call('ZADD', KEYS[1], string.format('%.0f', deadline), ARGV[i])
    else
        refused[#refused + 1] = ARGV[i]
    end
end
return refused
