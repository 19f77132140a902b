import type { Clock } from "./clock.js";
import { decideGcra, type GcraLimit, gcraLimit } from "./gcra.js";
import type { CheckRequest, Decision } from "./types.js";

/** A limit for when the server is away: `"100/1m"` is 100 at once, and one more every 600 ms. */
export type FallbackLimit = `${number}/${string}` | { requests: number; windowMs: number };

const KEYS_MAX = 10_000;
const SWEEP_EVERY_NS = 1_000_000_000n;
const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const IDENTITIES = ["apiKey", "userId", "clientKey", "org", "ip"] as const;

/** One limit for each client, in this process. Bounded: when full, new clients share one bucket. */
export class FallbackLimiter {
  private readonly limit: GcraLimit;
  readonly requests: number;
  readonly windowSeconds: number;
  private readonly buckets = new Map<string, bigint>();
  private overflow: bigint | undefined;
  private sweptNs = -SWEEP_EVERY_NS;

  constructor(
    limit: FallbackLimit,
    private readonly clock: Pick<Clock, "monotonicMs" | "wallMs">,
    private readonly keysMax = KEYS_MAX,
  ) {
    const { requests, windowMs } = typeof limit === "string" ? parsed(limit) : limit;
    if (!Number.isSafeInteger(requests) || !Number.isSafeInteger(windowMs)) throw notALimit(String(limit));
    this.limit = gcraLimit(BigInt(requests), BigInt(windowMs) * 1_000_000n);
    this.requests = requests;
    this.windowSeconds = Math.ceil(windowMs / 1000);
  }

  decide(request: CheckRequest): Decision {
    const nowNs = BigInt(Math.round(this.clock.monotonicMs() * 1e6));
    const cost = BigInt(request.cost ?? 1);
    const key = identityOf(request);
    const shared = !this.buckets.has(key) && this.buckets.size >= this.keysMax && !this.sweep(nowNs);
    const outcome = decideGcra(this.limit, shared ? this.overflow : this.buckets.get(key), nowNs, cost);
    if (!request.peek && outcome.arrivalNs !== undefined) {
      if (shared) this.overflow = outcome.arrivalNs;
      else this.buckets.set(key, outcome.arrivalNs);
    }
    const retryMs = outcome.allowed || outcome.retryAfterNs === null ? null : ceilMs(outcome.retryAfterNs);
    return {
      allowed: outcome.allowed,
      limit: this.requests,
      remaining: Number(outcome.remaining),
      resetAt: Math.ceil((this.clock.wallMs() + ceilMs(outcome.resetAfterNs)) / 1000),
      retryAfter: retryMs === null ? null : Math.ceil(retryMs / 1000),
      retryAfterMs: retryMs,
      ...(outcome.allowed || retryMs !== null ? {} : { never: true }),
      rule: "fallback",
      mode: "fallback",
      ...(outcome.allowed ? {} : { errorCode: outcome.retryAfterNs === null ? "cost_too_high" : "rate_limited" }),
    };
  }

  /** Drops buckets that equal unused ones, once a second at most; true if there is room now. */
  private sweep(nowNs: bigint): boolean {
    if (nowNs - this.sweptNs < SWEEP_EVERY_NS) return false;
    this.sweptNs = nowNs;
    for (const [key, arrivalNs] of this.buckets) if (arrivalNs <= nowNs) this.buckets.delete(key);
    return this.buckets.size < this.keysMax;
  }
}

function identityOf(request: CheckRequest): string {
  const kind = IDENTITIES.find((name) => request[name] !== undefined);
  return kind === undefined ? "" : `${kind}:${request[kind]}`;
}

function parsed(limit: string): { requests: number; windowMs: number } {
  const parts = /^(\d+)\/(\d+)(ms|s|m|h|d)$/.exec(limit);
  if (parts === null) throw notALimit(limit);
  return { requests: Number(parts[1]), windowMs: Number(parts[2]) * (UNITS[parts[3] ?? ""] ?? 0) };
}

function notALimit(text: string): RangeError {
  return new RangeError(`fallback: ${text} is no limit; write "100/1m"`);
}

function ceilMs(ns: bigint): number {
  return Number((ns + 999_999n) / 1_000_000n);
}
