import type { Clock } from "./clock.js";
import { TollgateError } from "./errors.js";
import type { Decision } from "./types.js";

interface SlotCalls {
  renew(slot: string): Promise<boolean>;
  release(slot: string): Promise<boolean>;
}

// Node 18 has no Symbol.asyncDispose; `await using` is compiled to this one there.
const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? (Symbol.for("Symbol.asyncDispose") as never);

/** A slot in flight: renewed three times in its lifetime until it is released. Without a server there is nothing to release. */
export class Slot {
  readonly allowed: boolean;
  /** The receipt of the slot; undefined if it was refused or the fail policy decided. */
  readonly slot: string | undefined;
  private readonly ended = new AbortController();

  constructor(
    readonly decision: Decision & { slot?: string; ttlMs?: number },
    private readonly clock: Pick<Clock, "sleep">,
    private readonly report: (error: TollgateError) => void,
    private readonly calls: SlotCalls,
  ) {
    this.allowed = decision.allowed;
    this.slot = decision.allowed ? decision.slot : undefined;
    if (this.slot !== undefined) void this.keep(this.slot, Math.max(1, (decision.ttlMs ?? 30_000) / 3));
  }

  /** Gives the slot back; true if it was still held. Safe to call twice. */
  async release(): Promise<boolean> {
    if (this.slot === undefined || this.ended.signal.aborted) return false;
    this.ended.abort();
    return this.calls.release(this.slot);
  }

  async [asyncDispose](): Promise<void> {
    await this.release().catch((error: unknown) => this.report(asTollgateError(error)));
  }

  private async keep(slot: string, everyMs: number): Promise<void> {
    for (;;) {
      try {
        await this.clock.sleep(everyMs, this.ended.signal);
        if (await this.calls.renew(slot)) continue;
        if (!this.ended.signal.aborted) this.report(new TollgateError("slot_lost", "a slot expired before its release"));
        return;
      } catch (error) {
        if (this.ended.signal.aborted) return;
        this.report(asTollgateError(error)); // and again after the next pause: the slot may still be held
        if (error instanceof TollgateError && error.status === 409) return;
      }
    }
  }
}

function asTollgateError(error: unknown): TollgateError {
  return error instanceof TollgateError ? error : new TollgateError("internal", String(error), undefined, error);
}
