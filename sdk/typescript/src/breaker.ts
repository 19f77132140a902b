import type { Clock } from "./clock.js";

const FAILURES = 5;
const PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 30_000;

/** Leaves a server alone that failed five times in a row: for a second, then one call; each further failure doubles the pause. */
export class CircuitBreaker {
  private failures = 0;
  private pauseMs = PAUSE_MS;
  private closedUntil = 0;
  private probing = false;

  constructor(private readonly clock: Pick<Clock, "monotonicMs">) {}

  /** Whether a call may be made now. A call that was let through must report its end. */
  admits(): boolean {
    if (this.failures < FAILURES) return true;
    if (this.probing || this.clock.monotonicMs() < this.closedUntil) return false;
    this.probing = true;
    return true;
  }

  succeeded(): void {
    this.failures = 0;
    this.pauseMs = PAUSE_MS;
    this.probing = false;
  }

  failed(): void {
    this.failures += 1;
    if (this.failures < FAILURES) return;
    // Calls that were under way when the circuit opened fail too, and do not double the pause.
    if (this.probing) this.pauseMs = Math.min(this.pauseMs * 2, PAUSE_MS_MAX);
    else if (this.failures > FAILURES) return;
    this.probing = false;
    this.closedUntil = this.clock.monotonicMs() + this.pauseMs;
  }
}
