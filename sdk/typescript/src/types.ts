/** What may be asked: the fields of the HTTP API's request, in camel case. */
export interface CheckRequest {
  /** `user:42` fills the user, `key:abc` the API key, `ip:192.0.2.1` the address, `org:acme` the organisation. */
  clientKey?: string | undefined;
  apiKey?: string | undefined;
  userId?: string | undefined;
  ip?: string | undefined;
  org?: string | undefined;
  tier?: string | undefined;
  /** `METHOD /path`, or `/path` for any method. */
  endpoint?: string | undefined;
  /** Units to charge; 1 if left out, 0 only reads. */
  cost?: number | undefined;
  /** Amounts of further meters, by name. */
  costs?: Record<string, number> | undefined;
  /** Asks whether the request would pass, and charges nothing. */
  peek?: boolean | undefined;
  attributes?: Record<string, string> | undefined;
  namespace?: string | undefined;
}

/** What decided: the server's modes, and those of a client without a server (`fallback`, `open`, `closed`). */
export type Mode = "store" | "lease" | "async" | "local" | "overflow" | "fallback" | "open" | "closed" | "off";

export interface Decision {
  allowed: boolean;
  limit: number | null;
  remaining: number | null;
  /** Seconds since 1970 until the bucket of the deciding rule equals an unused one. */
  resetAt: number | null;
  /** Whole seconds to wait, rounded up; null when allowed. */
  retryAfter: number | null;
  retryAfterMs: number | null;
  /** True if waiting does not help: the cost exceeds the limit. */
  never?: boolean;
  rule: string | null;
  mode: Mode;
  generation?: number;
  reason?: string;
  meter?: string;
  errorCode?: string;
  delayMs?: number;
  violatedRule?: { name: string; scope: string; limit: number; windowSeconds: number };
  rules?: RuleOutcome[];
}

/** The outcome of one of several rules that apply; a `shadow` rule never denies. */
export interface RuleOutcome {
  rule: string;
  allowed: boolean;
  limit: number | null;
  remaining: number | null;
  shadow?: boolean;
  meter?: string;
}

export interface Reservation extends Decision {
  /** The receipt, if allowed by the server: `settle` and `extend` take it. */
  reservation?: string;
  ttlMs?: number;
  /** Of an extension: the slot has expired, so waiting does not help. */
  slotLost?: boolean;
}

export interface Settlement {
  settled: boolean;
  /** Buckets that got units back. */
  refunded: number;
  /** Buckets that were charged more. */
  extended: number;
  above?: Record<string, number>;
  uncharged?: { rule: string; units: number }[];
}

/** Whose usage is asked for. */
export type ClientIdentity = Pick<CheckRequest, "clientKey" | "apiKey" | "userId" | "ip" | "org" | "tier" | "namespace">;

export interface Usage {
  namespace: string;
  generation: number;
  rules: { rule: string; used: number; limit: number | null; remaining: number | null; meter?: string; resetAt?: number }[];
}

/** What decides when the server gives no decision. */
export type OnError = "open" | "closed" | "local";
