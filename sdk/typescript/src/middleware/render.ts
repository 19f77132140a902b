import type { FallbackLimiter } from "../fallback.js";
import type { Answer } from "../transport.js";
import type { Decision } from "../types.js";

/** What goes to the caller: header fields, and for a refusal the status and the body. */
export interface Refusal {
  status: number;
  fields: [string, string][];
  body: string;
}

const PROBLEM: [string, string][] = [
  ["content-type", "application/problem+json"],
  ["cache-control", "no-store"],
];
const QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded";
// The styles of the server's setting `headers`: RateLimit…, X-RateLimit-…, x-rate-limit-….
const OF_THE_LIMIT = /^(x-)?rate-?limit(-|$)/;
const OF_A_REFUSAL = new Set(["content-type", "cache-control", "retry-after"]);

/** The header fields of the decision in the server's answer; nothing else of that answer reaches a caller. */
export function fieldsOf(answer: Answer): [string, string][] {
  return [...answer.headers].filter(([name]) => OF_THE_LIMIT.test(name));
}

/** A refusal as the server wrote it. */
export function refusalOf(answer: Answer): Refusal {
  const fields = [...answer.headers].filter(([name]) => OF_THE_LIMIT.test(name) || OF_A_REFUSAL.has(name));
  return { status: answer.status, fields, body: answer.text };
}

/** Fields of a decision of the fallback limiter, as the server writes them for a rule `fallback`. */
export function fallbackFields(decision: Decision, limiter: FallbackLimiter, nowMs: number): [string, string][] {
  const { limit, remaining, resetAt } = decision;
  const untilMore = decision.retryAfter ?? Math.max(0, (resetAt ?? 0) - Math.floor(nowMs / 1000));
  return [
    ["x-ratelimit-limit", `${limit}`],
    ["x-ratelimit-remaining", `${remaining}`],
    ["x-ratelimit-reset", `${resetAt}`],
    ["x-ratelimit-resource", "fallback"],
    ["ratelimit-policy", `"fallback";q=${limit};w=${limiter.windowSeconds}`],
    ["ratelimit", `"fallback";r=${remaining};t=${untilMore}`],
  ];
}

/** The refusal of the fallback limiter. */
export function fallbackRefusal(decision: Decision, fields: [string, string][]): Refusal {
  const { retryAfter, retryAfterMs, limit, remaining, resetAt, never, errorCode } = decision;
  const body = {
    type: QUOTA_EXCEEDED,
    title: "Quota exceeded",
    status: 429,
    detail: never
      ? "The request costs more than the rule 'fallback' ever allows at once."
      : "The limit of the rule 'fallback' is reached.",
    "violated-policies": ["fallback"],
    error: "rate_limited",
    message: never ? "This request can never pass: its cost exceeds the limit." : `Too many requests. Retry after ${retryAfter}s.`,
    error_code: errorCode,
    allowed: false,
    limit,
    remaining,
    reset_at: resetAt,
    retry_after: retryAfter,
    retry_after_ms: retryAfterMs,
    ...(never ? { never } : {}),
    rule: "fallback",
  };
  const retry: [string, string][] = retryAfter === null ? [] : [["retry-after", `${retryAfter}`]];
  return { status: 429, fields: [...PROBLEM, ...retry, ...fields], body: JSON.stringify(body) };
}

/** The refusal of `onError: "closed"`. */
export function closedRefusal(): Refusal {
  const body = {
    type: "about:blank",
    title: "Service unavailable",
    status: 503,
    detail: "The rate limiter cannot be reached.",
    error: "limiter_unavailable",
    error_code: "limiter_unavailable",
  };
  return { status: 503, fields: [...PROBLEM, ["retry-after", "1"]], body: JSON.stringify(body) };
}

/** The answer to a path, a method or a value that the server calls malformed: what it is cannot be counted, so it is not passed on. */
export function malformedRefusal(code: string): Refusal {
  const body = {
    type: "about:blank",
    title: "Bad request",
    status: 400,
    detail: code.startsWith("path_") || code === "bad_method" ? "The path or the method of the request is malformed." : "The request is malformed.",
    error: "malformed_request",
    error_code: code,
  };
  return { status: 400, fields: [...PROBLEM], body: JSON.stringify(body) };
}
