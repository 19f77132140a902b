/** GCRA in whole nanoseconds, as the server computes it (docs/ALGORITHMS.md). A bucket is one number: its theoretical arrival time. */

export interface GcraLimit {
  /** Nanoseconds in which one unit comes back. */
  intervalNs: bigint;
  /** Units that an unused bucket holds. */
  burst: bigint;
}

export interface GcraOutcome {
  allowed: boolean;
  remaining: bigint;
  /** Null if waiting does not help. */
  retryAfterNs: bigint | null;
  resetAfterNs: bigint;
  /** The bucket afterwards; undefined is an unused one. */
  arrivalNs: bigint | undefined;
}

export function gcraLimit(count: bigint, periodNs: bigint, burst: bigint = count): GcraLimit {
  const intervalNs = count > 0n && periodNs > 0n ? periodNs / count : 0n;
  if (intervalNs === 0n || burst <= 0n) throw new RangeError(`no limit: ${count} units in ${periodNs} ns, ${burst} at once`);
  return { intervalNs, burst };
}

export function decideGcra(limit: GcraLimit, arrivalNs: bigint | undefined, nowNs: bigint, cost: bigint): GcraOutcome {
  const tolerance = limit.intervalNs * limit.burst;
  // Ahead of now by at most the tolerance: more is a clock that stepped back.
  let ahead = arrivalNs === undefined || arrivalNs < nowNs ? 0n : arrivalNs - nowNs;
  if (ahead > tolerance) ahead = tolerance;
  const after = ahead + limit.intervalNs * cost;
  const allowed = after <= tolerance;
  const kept = allowed ? after : ahead;
  return {
    allowed,
    remaining: (tolerance - kept) / limit.intervalNs,
    retryAfterNs: allowed ? 0n : cost > limit.burst ? null : after - tolerance,
    resetAfterNs: kept,
    arrivalNs: kept === 0n ? undefined : nowNs + kept,
  };
}
