import { unreadable } from "./bounds.js";
import { CircuitBreaker } from "./breaker.js";
import { type Clock, systemClock } from "./clock.js";
import { TollgateError } from "./errors.js";
import type { FallbackLimiter } from "./fallback.js";
import { FailPolicy, type PolicySettings } from "./policy.js";
import { Slot } from "./slot.js";
import { type Answer, Transport } from "./transport.js";
import type { CheckRequest, ClientIdentity, Decision, Reservation, Settlement, Usage } from "./types.js";
import { fromWire, toWire } from "./wire.js";

export interface ClientSettings extends PolicySettings {
  /** Default: `TOLLGATE_URL`, else `http://127.0.0.1:8080`. */
  url?: string | undefined;
  /** Default: `TOLLGATE_DATA_TOKEN`. */
  token?: string | undefined;
  /** For one call, connection included; default 250. */
  timeoutMs?: number | undefined;
  fetch?: typeof fetch | undefined;
  clock?: Clock | undefined;
}

/** An answer about a request, or the error that takes its place. */
type Asked = { json: Record<string, unknown>; answer: Answer } | { error: TollgateError };

/** A client of one server. Safe to share; it holds no connection that must be closed. */
export class Tollgate {
  private readonly transport: Transport;
  private readonly breaker: CircuitBreaker;
  private readonly policy: FailPolicy;
  private readonly clock: Clock;

  constructor(settings: ClientSettings = {}) {
    const environment: Record<string, string | undefined> = globalThis.process?.env ?? {};
    const url = settings.url ?? environment["TOLLGATE_URL"] ?? "http://127.0.0.1:8080";
    const token = settings.token ?? (environment["TOLLGATE_DATA_TOKEN"] || undefined);
    this.clock = settings.clock ?? systemClock;
    const send = settings.fetch ?? ((input, init) => fetch(input, init));
    this.transport = new Transport(url.replace(/\/+$/, ""), token, settings.timeoutMs ?? 250, send, this.clock);
    this.breaker = new CircuitBreaker(this.clock);
    this.policy = new FailPolicy(settings, this.clock);
  }

  /** One decision. Throws only for what its caller sent malformed (`TollgateError.malformedEndpoint`), and for costs that are no whole numbers. */
  async check(request: CheckRequest): Promise<Decision> {
    return (await this.decide("/v1/check", request)).decision;
  }

  /** Decisions in the order of the requests; one call. A malformed request has its error in its place, and may not pass. */
  async checkBatch(requests: readonly CheckRequest[]): Promise<(Decision | TollgateError)[]> {
    // What the server cannot read would make the whole batch unreadable.
    const malformed = requests.map(unreadable);
    const readable = requests.filter((_, index) => malformed[index] === undefined);
    const results = await this.checkReadable(readable);
    return malformed.map((error) => error ?? (results.shift() as Decision | TollgateError));
  }

  private async checkReadable(requests: readonly CheckRequest[]): Promise<(Decision | TollgateError)[]> {
    if (requests.length === 0) return [];
    const asked = await this.ask("/v1/check/batch", { requests: requests.map(toWire) }, isBatch(requests.length));
    if ("error" in asked) {
      if (asked.error.malformedEndpoint) throw asked.error;
      this.policy.report(asked.error);
      return requests.map((request) => this.policy.decide(request));
    }
    return (asked.json["results"] as Record<string, unknown>[]).map((result, index) => {
      if (typeof result["allowed"] === "boolean") return fromWire(result) as Decision;
      const error = problem(result, 400);
      if (error.malformedEndpoint) return error;
      this.policy.report(error);
      return this.policy.decide(requests[index] ?? {});
    });
  }

  /** Charges estimates now; `settle` the real amounts within a day. */
  async reserve(request: CheckRequest): Promise<Reservation> {
    return (await this.decide("/v1/reserve", request)).decision;
  }

  /** The next step of a reservation; its receipt replaces the one that was given. */
  async extend(reservation: string, costs: Record<string, number>): Promise<Reservation> {
    return fromWire(await this.demand("/v1/extend", { reservation, costs }, isDecision)) as Reservation;
  }

  async settle(reservation: string, costs: Record<string, number>): Promise<Settlement> {
    return fromWire(await this.demand("/v1/settle", { reservation, costs }, (json) => "settled" in json)) as Settlement;
  }

  /** A slot that renews itself until it is released: `try { … } finally { await slot.release() }`, or `await using`. */
  async acquireSlot(request: CheckRequest): Promise<Slot> {
    const { decision } = await this.decide("/v1/slots/acquire", request);
    return new Slot(decision, this.clock, (error) => this.policy.report(error), {
      renew: async (slot) => (await this.demand("/v1/slots/renew", { slot }, (json) => "renewed" in json))["renewed"] === true,
      release: async (slot) => (await this.demand("/v1/slots/release", { slot }, (json) => "released" in json))["released"] === true,
    });
  }

  /** What a client has used of every rule. */
  async usage(client: ClientIdentity): Promise<Usage> {
    const query = new URLSearchParams(toWire(client) as Record<string, string>);
    return fromWire(await this.demand(`/v1/usage?${query}`, undefined, (json) => "rules" in json)) as Usage;
  }

  /** For middleware: the decision, and the answer as the server wrote it for the caller (none if the policy decided). */
  async decide(path: string, request: CheckRequest): Promise<{ decision: Reservation & { slot?: string }; answer: Answer | undefined }> {
    const malformed = unreadable(request);
    if (malformed !== undefined) throw malformed;
    const asked = await this.ask(path, toWire(request), isDecision);
    if (!("error" in asked)) return { decision: fromWire(asked.json) as Reservation, answer: asked.answer };
    if (asked.error.malformedEndpoint) throw asked.error;
    this.policy.report(asked.error);
    return { decision: this.policy.decide(request), answer: undefined };
  }

  /** What decides while the server is away, if a fallback limit is set. */
  get fallbackLimiter(): FallbackLimiter | undefined {
    return this.policy.limiter;
  }

  /** Reports what middleware could not do for a request that is already answered. */
  report(error: unknown): void {
    this.policy.report(error instanceof TollgateError ? error : new TollgateError("internal", String(error), undefined, error));
  }

  private async demand(path: string, body: unknown, valid: (json: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
    const asked = await this.ask(path, body, valid);
    if ("error" in asked) throw asked.error;
    return asked.json;
  }

  private async ask(path: string, body: unknown, valid: (json: Record<string, unknown>) => boolean): Promise<Asked> {
    if (!this.breaker.admits()) {
      return { error: new TollgateError("circuit_open", "the server failed again and again and is left alone") };
    }
    let error: TollgateError;
    try {
      const answer = await this.transport.call(body === undefined ? "GET" : "POST", path, body);
      if (answer.json !== undefined && valid(answer.json)) {
        this.breaker.succeeded();
        return { json: answer.json, answer };
      }
      error = refusedCall(answer);
    } catch (thrown) {
      error = thrown instanceof TollgateError ? thrown : new TollgateError("internal", String(thrown), undefined, thrown);
    }
    if (error.serverFailed) this.breaker.failed();
    else this.breaker.succeeded();
    return { error };
  }
}

/** A decision, whatever its status: a refusal that asked for one has 429 or another. */
function isDecision(json: Record<string, unknown>): boolean {
  return typeof json["allowed"] === "boolean";
}

function isBatch(length: number): (json: Record<string, unknown>) => boolean {
  return (json) => Array.isArray(json["results"]) && json["results"].length === length;
}

function refusedCall(answer: Answer): TollgateError {
  if (typeof answer.json?.["code"] === "string") return problem(answer.json, answer.status);
  if (answer.status === 413) return new TollgateError("body_too_large", "the request is longer than the server reads", 413); // by a proxy
  return new TollgateError("unreadable", `an answer of status ${answer.status} that is no decision`, answer.status);
}

function problem(json: Record<string, unknown>, status: number): TollgateError {
  const { code, detail, field } = json;
  return new TollgateError(String(code), String(detail ?? code), status, undefined, typeof field === "string" ? field : undefined);
}
