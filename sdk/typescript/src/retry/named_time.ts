import type { Reply } from "./reply.js";

const EPOCH_SECONDS_FROM = 1e9;
const EPOCH_MILLISECONDS_FROM = 1e12;
/** A longer field is as good as none: reading one takes time by its square if it is made for that. */
const FIELD_MAX = 8192;

/** How long a response asks to wait, in milliseconds; undefined if it does not say, or if that time has passed. */
export function namedWaitMs(reply: Reply, nowMs: number): number | undefined {
  const field = (name: string): string | null => {
    const value = reply.header(name);
    return value !== null && value.length <= FIELD_MAX ? value : null;
  };
  const named =
    retryAfter(field("retry-after"), nowMs) ??
    rateLimit(field("ratelimit")) ??
    seconds(field("ratelimit-reset")) ??
    reset(field("x-ratelimit-reset"), nowMs);
  return named !== undefined && named > 0 ? named : undefined;
}

/** Whole seconds, or an HTTP date. */
function retryAfter(value: string | null, nowMs: number): number | undefined {
  const named = seconds(value);
  if (named !== undefined || value === null || !/^[A-Z][a-z]{2},? /.test(value)) return named;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : date - nowMs;
}

/** `"orders";r=0;t=4` of draft 11, the longest of those with nothing left; `limit=10, remaining=0, reset=6` of draft 07. */
function rateLimit(value: string | null): number | undefined {
  if (value === null) return undefined;
  const bare = value.replace(/"(?:[^"\\]|\\.)*"/g, '""'); // names may hold commas and semicolons
  const policies = bare.split(",").map((policy) => ({
    left: parameter(policy, "r"),
    time: parameter(policy, "t"),
    reset: parameter(policy, "reset"),
  }));
  const draft07 = policies.find((policy) => policy.reset !== undefined);
  if (draft07 !== undefined) return (draft07.reset ?? 0) * 1000;
  const empty = policies.filter((policy) => policy.left === 0);
  const times = (empty.length > 0 ? empty : policies).flatMap((policy) => policy.time ?? []);
  return times.length > 0 ? Math.max(...times) * 1000 : undefined;
}

function parameter(policy: string, name: string): number | undefined {
  const found = new RegExp(`(?:^|;)\\s*${name}=(\\d+)\\s*(?=;|$)`).exec(policy);
  return found === null ? undefined : Number(found[1]);
}

/** Seconds from now, or since 1970; milliseconds since 1970. */
function reset(value: string | null, nowMs: number): number | undefined {
  const ms = seconds(value);
  if (ms === undefined) return undefined;
  const number = ms / 1000;
  if (number > EPOCH_MILLISECONDS_FROM) return number - nowMs;
  return number > EPOCH_SECONDS_FROM ? ms - nowMs : ms;
}

/** Milliseconds of a whole number of seconds. */
function seconds(value: string | null): number | undefined {
  return value !== null && /^\s*\d+\s*$/.test(value) ? Number(value) * 1000 : undefined;
}
