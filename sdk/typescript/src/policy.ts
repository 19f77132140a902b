import type { TollgateError } from "./errors.js";
import type { Clock } from "./clock.js";
import { type FallbackLimit, FallbackLimiter } from "./fallback.js";
import type { CheckRequest, Decision, OnError } from "./types.js";

const LOG_EVERY_MS = 10_000;

export interface PolicySettings {
  onError?: OnError | undefined;
  fallback?: FallbackLimit | undefined;
  onFailure?: ((error: TollgateError) => void) | undefined;
  log?: ((message: string) => void) | false | undefined;
}

/** Decides when the server gives no decision, and reports why it did not. */
export class FailPolicy {
  readonly onError: OnError;
  readonly limiter: FallbackLimiter | undefined;
  private loggedMs = -LOG_EVERY_MS;

  constructor(private readonly settings: PolicySettings, private readonly clock: Clock) {
    this.limiter = settings.fallback === undefined ? undefined : new FallbackLimiter(settings.fallback, clock);
    this.onError = settings.onError ?? (this.limiter === undefined ? "open" : "local");
    if (this.onError === "local" && this.limiter === undefined) {
      throw new TypeError('onError "local" needs a fallback limit, such as fallback: "100/1m"');
    }
  }

  decide(request: CheckRequest): Decision {
    if (this.onError === "local" && this.limiter !== undefined) return this.limiter.decide(request);
    const unknown = { limit: null, remaining: null, resetAt: null, rule: null };
    if (this.onError === "closed") {
      return { allowed: false, ...unknown, retryAfter: 1, retryAfterMs: 1000, mode: "closed", errorCode: "limiter_unavailable" };
    }
    return { allowed: true, ...unknown, retryAfter: null, retryAfterMs: null, mode: "open" };
  }

  /** To the hook, and to the log once in ten seconds at most. */
  report(error: TollgateError): void {
    this.settings.onFailure?.(error);
    const now = this.clock.monotonicMs();
    if (this.settings.log === false || now - this.loggedMs < LOG_EVERY_MS) return;
    this.loggedMs = now;
    const log = this.settings.log ?? ((message: string) => console.warn(message));
    log(`tollgate: ${error.message} (${error.code}); until it is well, on error: ${this.onError}`);
  }
}
