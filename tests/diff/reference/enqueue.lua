-- SPDX-License-Identifier: Apache-2.0
-- The scripted twin of EMQ.ENQUEUE: KEYS row pending, ARGV id payload.
if ARGV[1]:sub(1, 3) ~= 'JOB' then
    return redis.error_reply('EMQKIND job id must be JOB-namespaced')
end
if redis.call('EXISTS', KEYS[1]) ~= 0 then
    return 0
end
redis.call('HSET', KEYS[1], 'state', 'pending', 'attempts', '0', 'payload', ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
return 1
