-- Every call: KEYS are the buckets, each once; ARGV[1] holds all numbers, as unsigned little-endian integers:
--   deadline, then for each charge
--   I2 of the first charge of a question: how many it has, + 32768 if it is refused already; of the others: 0
--   B  kind, B flags, I2 number of the key, then what the kind needs
-- Spans and times are I5 seconds and I4 nanoseconds, counts are I4 high and I4 low.
-- Reply: { seconds, nanoseconds, verdicts, the buckets as they were found, and if there were any the number of foreign
-- values }, or { seconds, nanoseconds, word }.
-- Everything is read and decided before the first write, but for foreign values; nothing that is written can fail.
local G = 1000000000
local call, read, show, sub, find = redis.call, struct.unpack, string.format, string.sub, string.find
local blob, keys = ARGV[1] or '', #KEYS
local length = #blob
if length < 9 then return {S, N, 'ARGS'} end
local deadline_s, deadline_n, p = read('<I5I4', blob)
if S > deadline_s or (S == deadline_s and N > deadline_n) then return {S, N, 'EXPIRED'} end
-- New states, by the number of their key: only what is written is in here. A table that begins with room for what
-- most calls need is not made anew for every second entry.
local A, B = {false, false, false, false}, {false, false, false, false}
-- Verdicts as digits: 0 refused, 1 passed, 2 no room.
local verdicts, told, digits = nil, 0, 0
local q, kind, f, k
-- Values under our keys that are no buckets: deleted as they are found, and taken for unused ones.
local foreign = 0
local cs, cn, ls, ln, bs, bn
-- What was seen of the charges of a question, twenty places each.
local plan
