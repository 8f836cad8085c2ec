-- SPDX-License-Identifier: Apache-2.0
-- The scripted twin of EMQ.EXTEND: KEYS active row, ARGV id token lease_ms.
local attempts = redis.call('HGET', KEYS[2], 'attempts')
if not attempts then
    return -1
end
if attempts ~= ARGV[2] then
    return redis.error_reply('EMQSTALE extend token mismatch')
end
local time = redis.call('TIME')
local deadline = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[3]
redis.call('ZADD', KEYS[1], string.format('%.0f', deadline), ARGV[1])
return 1
