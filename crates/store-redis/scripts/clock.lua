-- Now, as whole seconds and nanoseconds of the second: a double cannot hold a nanosecond epoch. Read once, because
-- Redis 7 does not stop it for a script. Expiries are set as they are computed: no seconds later.
local time = redis.call('TIME')
local now_s, now_n, later = time[1] + 0, time[2] * 1000, 0
