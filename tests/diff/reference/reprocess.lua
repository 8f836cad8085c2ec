-- SPDX-License-Identifier: Apache-2.0
-- The scripted twin of EMQ.REPROCESS: KEYS row dead pending, ARGV id.
if redis.call('EXISTS', KEYS[1]) == 0 then
    return -1
end
if redis.call('ZREM', KEYS[2], ARGV[1]) ~= 1 then
    return redis.error_reply('EMQSTATE not dead')
end
redis.call('HDEL', KEYS[1], 'last_error')
redis.call('HSET', KEYS[1], 'state', 'pending')
redis.call('ZADD', KEYS[3], 0, ARGV[1])
return 1
