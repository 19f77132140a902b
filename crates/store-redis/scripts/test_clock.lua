-- Now is what the test says. Buckets outlive it by an hour: the server expires them by a clock that the test does not
-- hold.
local now_s, now_n = struct.unpack('<I5I4', ARGV[2])
local later = redis.call('TIME')[1] - now_s + 3600
