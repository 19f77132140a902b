#!lua
-- One GCRA bucket, exact to the nanosecond: what anybody would write who needs nothing but that.
-- KEYS[1] the bucket: when it will be empty again, in nanoseconds since 1970
-- ARGV    nanoseconds that this request adds, that fit, and that are the most a bucket may ever hold
local BILLION = 1000000000

local function parse(text)
  local digits = #text
  if digits < 10 then return 0, tonumber(text) end
  return tonumber(string.sub(text, 1, digits - 9)), tonumber(string.sub(text, digits - 8))
end

local function plus(s, n, more_s, more_n)
  s, n = s + more_s, n + more_n
  if n >= BILLION then return s + 1, n - BILLION end
  return s, n
end

local function later(s, n, than_s, than_n)
  return s > than_s or (s == than_s and n > than_n)
end

local time = redis.call('TIME')
local now_s, now_n = tonumber(time[1]), tonumber(time[2]) * 1000
local s, n = now_s, now_n
local stored = redis.call('GET', KEYS[1])
if stored then
  local stored_s, stored_n = parse(stored)
  if later(stored_s, stored_n, now_s, now_n) then s, n = stored_s, stored_n end
  local most_s, most_n = plus(now_s, now_n, parse(ARGV[3]))
  if later(s, n, most_s, most_n) then s, n = most_s, most_n end
end

local end_s, end_n = plus(s, n, parse(ARGV[1]))
local limit_s, limit_n = plus(now_s, now_n, parse(ARGV[2]))
local allowed = not later(end_s, end_n, limit_s, limit_n)
if allowed then
  s, n = end_s, end_n
  local milliseconds = (s - now_s) * 1000 + math.ceil((n - now_n) / 1000000) + 1
  redis.call('SET', KEYS[1], string.format('%.0f%09d', s, n), 'PX', string.format('%.0f', milliseconds))
end
return { allowed and 1 or 0, string.format('%.0f%09d', now_s, now_n), string.format('%.0f%09d', s, n) }
