-- KEYS are buckets and marks of spent receipts, each once; ARGV[1] holds all numbers, as in the other scripts:
--   deadline, then for each receipt
--   B kind, I2 number of the bucket's key, I2 number of the mark's key or 0, until when its charge owes anything, then
--   what the kind needs
-- Reply: { seconds, nanoseconds, how many gave something back, and if there were any the number of foreign values }, or
-- { seconds, nanoseconds, word }.
local G, H = 1000000000, 4294967296
local call, read, pack, show, sub, find = redis.call, struct.unpack, struct.pack, string.format, string.sub, string.find
local blob, keys = ARGV[1] or '', #KEYS
local length = #blob
if length < 9 then return {S, N, 'ARGS'} end
local deadline_s, deadline_n, p = read('<I5I4', blob)
if S > deadline_s or (S == deadline_s and N > deadline_n) then return {S, N, 'EXPIRED'} end
local A, B, C, D, E, F, kinds, due = {}, {}, {}, {}, {}, {}, {}, {}
local keep_s, keep_n = {}, {}
local held = {}
if keys > 0 then held = call('MGET', unpack(KEYS)) end
local given, spent, listed, foreign = 0, {}, {}, 0
while p <= length do
  if p + 13 > length then return {S, N, 'ARGS'} end
  local kind, k, mark, until_s, until_n
  kind, k, mark, until_s, until_n, p = read('<BI2I2I5I4', blob, p)
  if k < 1 or k > keys or mark > keys or until_n >= G then return {S, N, 'ARGS'} end
  local again = mark > 0 and (held[mark] or spent[mark])
  if mark > 0 and not again and (until_s > S or (until_s == S and until_n > N)) then
    spent[mark] = until_s * 1000 + (until_n + 999999 - (until_n + 999999) % 1000000) / 1000000 + 1 + later * 1000
  end
  local there = not again and (held[k] or A[k])
