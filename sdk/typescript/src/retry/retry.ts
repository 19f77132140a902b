import { type Clock, systemClock } from "../clock.js";
import { RetryBudget } from "./budget.js";
import { namedWaitMs } from "./named_time.js";
import { type Reply, saysLater } from "./reply.js";
import { AdaptiveThrottle } from "./throttle.js";

export interface RetrySettings {
  /** Attempts in all; default 3. */
  attempts?: number | undefined;
  /** The first wait of the exponential backoff; default 100. */
  baseMs?: number | undefined;
  /** The longest; default 20,000. */
  capMs?: number | undefined;
  /** `full`: random × wait (the default); `equal`: wait × (0.5 + random). */
  jitter?: "full" | "equal" | undefined;
  /** For all attempts and waits; default 60,000. A wait that would end later is not begun. */
  deadlineMs?: number | undefined;
  /** Refuse calls here while the server accepts less than half of them; off by default. */
  adaptive?: boolean | undefined;
  /** Set by tests. */
  clock?: Clock | undefined;
  random?: (() => number) | undefined;
}

export interface RetriedCall {
  method: string;
  /** The call has an idempotency key: it may be repeated whatever its method. */
  idempotent?: boolean;
  signal?: AbortSignal | undefined;
}

/** Not sent: the server has refused so much of late that this call was refused here. */
export class Throttled extends Error {
  override readonly name = "Throttled";
}

const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"]);
const CENTURY_MS = 100 * 365 * 86_400_000;

/** Repeats calls that were told "later". One for each server that is called: budget and throttle are about that server. */
export class Retry {
  private readonly clock: Clock;
  private readonly random: () => number;
  private readonly budget = new RetryBudget();
  private readonly throttle: AdaptiveThrottle | undefined;

  constructor(private readonly settings: RetrySettings = {}) {
    this.clock = settings.clock ?? systemClock;
    this.random = settings.random ?? Math.random;
    this.throttle = settings.adaptive ? new AdaptiveThrottle() : undefined;
  }

  /** The first reply that does not say "later", or the last one. Errors of `send` are the caller's: they are not repeated. */
  async run<R extends Reply>(call: RetriedCall, send: (attempt: number) => Promise<R>): Promise<R> {
    const deadline = this.clock.monotonicMs() + (this.settings.deadlineMs ?? 60_000);
    this.budget.called();
    for (let attempt = 1; ; attempt += 1) {
      const { reply, later } = await this.attempt(() => send(attempt));
      if (!later || attempt >= (this.settings.attempts ?? 3) || !mayRepeat(call, reply)) return reply;
      const wait = this.waitMs(attempt, reply);
      const now = this.clock.monotonicMs();
      if (now + wait > deadline || !this.budget.take(now)) return reply;
      await this.clock.sleep(wait, call.signal);
    }
  }

  private async attempt<R extends Reply>(send: () => Promise<R>): Promise<{ reply: R; later: boolean }> {
    const refusal = this.throttle?.refusal(this.clock.monotonicMs()) ?? 0;
    this.throttle?.requested(this.clock.monotonicMs());
    if (refusal > 0 && this.random() < refusal) {
      throw new Throttled("refused here: the server has refused most calls of the last two minutes");
    }
    const reply = await send();
    const later = await saysLater(reply);
    if (!later) this.throttle?.accepted(this.clock.monotonicMs());
    return { reply, later };
  }

  /** What the server named, and up to a tenth more; else a part of a wait that doubles. */
  private waitMs(attempt: number, reply: Reply): number {
    const random = this.random();
    const named = namedWaitMs(reply, this.clock.wallMs());
    if (named !== undefined) return Math.floor(Math.min(named, CENTURY_MS) * (1 + random / 10));
    const wait = Math.min(this.settings.capMs ?? 20_000, (this.settings.baseMs ?? 100) * 2 ** (attempt - 1));
    return Math.floor(wait * (this.settings.jitter === "equal" ? 0.5 + random : random));
  }
}

function mayRepeat(call: RetriedCall, reply: Reply): boolean {
  return reply.status === 429 || call.idempotent === true || IDEMPOTENT.has(call.method.toUpperCase());
}
