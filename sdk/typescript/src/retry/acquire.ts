import type { Tollgate } from "../client.js";
import { type Clock, systemClock } from "../clock.js";
import type { CheckRequest, Decision } from "../types.js";

/** The limit has no room before the deadline, or never will have. */
export class NoRoom extends Error {
  override readonly name = "NoRoom";

  constructor(readonly decision: Decision) {
    super(decision.never ? "the cost exceeds the limit" : `no room before the deadline: retry after ${decision.retryAfterMs} ms`);
  }
}

/** Waits until a limit has room, first come, first served in this process: for callers of an API with a known limit. */
export class Acquirer {
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly client: Pick<Tollgate, "check">,
    private readonly request: CheckRequest,
    private readonly clock: Clock = systemClock,
  ) {}

  /** Resolves when `units` were charged; rejects with `NoRoom` if that takes longer than `deadlineMs`. */
  acquire(units = 1, deadlineMs = 60_000): Promise<Decision> {
    const deadline = this.clock.monotonicMs() + deadlineMs;
    const turn = this.last.then(() => this.wait(units, deadline));
    this.last = turn.catch(() => {});
    return turn;
  }

  private async wait(units: number, deadline: number): Promise<Decision> {
    for (;;) {
      const decision = await this.client.check({ ...this.request, cost: units });
      if (decision.allowed) return decision;
      const wait = Math.max(1, decision.retryAfterMs ?? 0);
      if (decision.retryAfterMs === null || this.clock.monotonicMs() + wait > deadline) throw new NoRoom(decision);
      await this.clock.sleep(wait);
    }
  }
}
