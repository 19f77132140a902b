import { type ClientSettings, Tollgate } from "../client.js";
import { systemClock } from "../clock.js";
import { TollgateError } from "../errors.js";
import type { CheckRequest, Decision } from "../types.js";
import { clientAddress, type Network, parseNetwork } from "./address.js";
import { endpointOf, foldCase, hasDotSegment } from "./path.js";
import { closedRefusal, fallbackFields, fallbackRefusal, fieldsOf, malformedRefusal, type Refusal, refusalOf } from "./render.js";

/** What the application knows of a caller, and has verified. */
export type Identity = Omit<CheckRequest, "endpoint" | "cost" | "costs" | "peek">;

type Value<Req, T> = T | ((request: Req) => T | Promise<T>);

/** The settings of every middleware, beside those of its client. */
export interface GuardSettings<Req, Res = unknown> extends ClientSettings {
  /** A client to share; else one is made of the settings here. */
  client?: Tollgate | undefined;
  /** Fields that identify the caller, beside its address. */
  identify?: ((request: Req) => Identity | undefined | Promise<Identity | undefined>) | undefined;
  /** Networks whose `X-Forwarded-For` is believed. */
  trustedProxies?: readonly string[] | undefined;
  /** Follows the router's own setting where it has one. */
  caseInsensitivePaths?: boolean | undefined;
  cost?: Value<Req, number> | undefined;
  costs?: Value<Req, Record<string, number>> | undefined;
  skip?: ((request: Req) => boolean) | undefined;
  /** Decides and reports, and always passes. */
  shadow?: boolean | undefined;
  /** Sees every decision, for metrics and logs. */
  onDecision?: ((decision: Decision, request: Req) => void) | undefined;
  /** Replaces status and body of a refusal; the header fields stay, but for the content type. */
  onDenied?: ((decision: Decision, request: Req) => { status?: number; body: string; contentType?: string }) | undefined;
  /** The real costs, when the response is there: `costs` (or `cost`) are then estimates, reserved before the handler runs. */
  settle?: ((request: Req, response: Res) => number | Record<string, number>) | undefined;
}

/** What a framework knows of a request. */
export interface Facts {
  method: string;
  /** As the router sees it, not decoded. */
  path: string;
  /** The peer of the connection. */
  peer: string | undefined;
  /** All fields `X-Forwarded-For`, joined by commas. */
  forwardedFor: string | undefined;
  /** The router's own setting. */
  caseInsensitive?: boolean;
}

export type Admission<Res> =
  | { refusal: Refusal }
  | {
      refusal?: undefined;
      /** Header fields for the application's response. */
      fields: [string, string][];
      /** Settles what was reserved: with the response, or with none if the handler never answered. Never throws. */
      settle(response: Res | undefined): Promise<void>;
    };

/** Decides about requests of any framework: the framework's file says what it knows, and does what is decided. */
export class Guard<Req, Res = unknown> {
  private readonly client: Tollgate;
  private readonly trusted: readonly Network[];

  constructor(private readonly settings: GuardSettings<Req, Res>) {
    this.client = settings.client ?? new Tollgate(settings);
    this.trusted = (settings.trustedProxies ?? []).map(parseNetwork);
  }

  async admit(request: Req, facts: Facts): Promise<Admission<Res>> {
    const pass = { fields: [], settle: async () => {} };
    if (this.settings.skip?.(request)) return pass;
    if (hasDotSegment(facts.path)) return this.settings.shadow ? pass : { refusal: malformedRefusal("path_dot_segment") };
    const asked = await this.request(request, facts);
    const path = this.settings.settle === undefined ? "/v1/check?status=429" : "/v1/reserve?status=429";
    try {
      const { decision, answer } = await this.client.decide(path, asked);
      this.settings.onDecision?.(decision, request);
      const limiter = decision.mode === "fallback" && answer === undefined ? this.client.fallbackLimiter : undefined;
      const fields = answer ? fieldsOf(answer) : limiter ? fallbackFields(decision, limiter, systemClock.wallMs()) : [];
      if (decision.allowed || this.settings.shadow) {
        // A rule that queues: passed on when its turn comes.
        if (decision.delayMs && !this.settings.shadow) await systemClock.sleep(decision.delayMs);
        return { fields, settle: (response) => this.settle(asked, decision.reservation, request, response) };
      }
      const refusal = answer ? refusalOf(answer) : limiter ? fallbackRefusal(decision, fields) : closedRefusal();
      return { refusal: this.replaced(refusal, decision, request) };
    } catch (error) {
      if (!(error instanceof TollgateError) || !error.malformedEndpoint) throw error;
      return this.settings.shadow ? pass : { refusal: malformedRefusal(error.code) };
    }
  }

  private async request(request: Req, facts: Facts): Promise<CheckRequest> {
    const { identify, cost, costs, caseInsensitivePaths } = this.settings;
    const folds = caseInsensitivePaths ?? facts.caseInsensitive ?? false;
    return {
      ip: clientAddress(facts.peer, facts.forwardedFor, this.trusted),
      ...(await identify?.(request)),
      endpoint: endpointOf(facts.method, folds ? foldCase(facts.path) : facts.path),
      cost: await valueOf(cost, request),
      costs: await valueOf(costs, request),
    };
  }

  private async settle(asked: CheckRequest, reservation: string | undefined, request: Req, response: Res | undefined): Promise<void> {
    if (this.settings.settle === undefined || reservation === undefined) return;
    try {
      const real = response === undefined ? nothing(asked) : this.settings.settle(request, response);
      await this.client.settle(reservation, typeof real === "number" ? { requests: real } : real);
    } catch (error) {
      this.client.report(error);
    }
  }

  private replaced(refusal: Refusal, decision: Decision, request: Req): Refusal {
    const denied = this.settings.onDenied?.(decision, request);
    if (denied === undefined) return refusal;
    const type = denied.contentType ?? "application/json";
    const fields = refusal.fields.map(([name, value]): [string, string] => [name, name === "content-type" ? type : value]);
    return { status: denied.status ?? refusal.status, fields, body: denied.body };
  }
}

/** The handler never answered: nothing was used of what was estimated. */
function nothing(asked: CheckRequest): Record<string, number> {
  return Object.fromEntries(["requests", ...Object.keys(asked.costs ?? {})].map((meter) => [meter, 0]));
}

async function valueOf<Req, T>(value: Value<Req, T> | undefined, request: Req): Promise<T | undefined> {
  return typeof value === "function" ? (value as (request: Req) => T | Promise<T>)(request) : value;
}
