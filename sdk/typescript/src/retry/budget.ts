const BALANCE_MAX = 100;
const PER_CALL = 1;
const PER_RETRY = 10;
const GRACE_MS = 1_000;

/** Retries are at most a tenth of the calls: a server in trouble is not given more to do. One a second is always allowed. */
export class RetryBudget {
  private balance = BALANCE_MAX;
  private lastMs = Number.NEGATIVE_INFINITY;

  called(): void {
    this.balance = Math.min(BALANCE_MAX, this.balance + PER_CALL);
  }

  /** Takes a retry, if there is one. */
  take(nowMs: number): boolean {
    if (this.balance >= PER_RETRY) this.balance -= PER_RETRY;
    else if (nowMs - this.lastMs < GRACE_MS) return false;
    this.lastMs = nowMs;
    return true;
  }
}
