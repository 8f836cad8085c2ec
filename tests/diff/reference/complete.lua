-- SPDX-License-Identifier: Apache-2.0
-- The scripted twin of EMQ.COMPLETE: KEYS active row base, ARGV id token.
local attempts = redis.call('HGET', KEYS[2], 'attempts')
if not attempts then
    return 0
end
if attempts ~= ARGV[2] then
    return redis.error_reply('EMQSTALE complete token mismatch')
end
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then
    redis.call('ZREM', KEYS[3] .. 'pending', ARGV[1])
end
redis.call('DEL', KEYS[2])
redis.call('HINCRBY', KEYS[3] .. 'metrics:completed', 'count', 1)
return 1
