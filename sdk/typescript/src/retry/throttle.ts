const WINDOW_MS = 120_000;
const BUCKET_MS = 10_000;
const K = 2;

/** Adaptive throttling: calls are refused here while the server accepts less than half of them. */
export class AdaptiveThrottle {
  private readonly buckets: { startMs: number; requests: number; accepts: number }[] = [];

  /** The probability with which the next call is to be refused. */
  refusal(nowMs: number): number {
    while (this.buckets[0] !== undefined && nowMs - this.buckets[0].startMs >= WINDOW_MS) this.buckets.shift();
    const requests = this.buckets.reduce((sum, bucket) => sum + bucket.requests, 0);
    const accepts = this.buckets.reduce((sum, bucket) => sum + bucket.accepts, 0);
    return Math.max(0, (requests - K * accepts) / (requests + 1));
  }

  /** Counts a call, also one that was refused here. */
  requested(nowMs: number): void {
    this.bucket(nowMs).requests += 1;
  }

  accepted(nowMs: number): void {
    this.bucket(nowMs).accepts += 1;
  }

  private bucket(nowMs: number): { requests: number; accepts: number } {
    const startMs = nowMs - (nowMs % BUCKET_MS);
    const last = this.buckets.at(-1);
    if (last !== undefined && last.startMs >= startMs) return last;
    const bucket = { startMs, requests: 0, accepts: 0 };
    this.buckets.push(bucket);
    return bucket;
  }
}
