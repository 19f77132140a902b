import { TollgateError } from "./errors.js";
import type { Clock } from "./clock.js";

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** The body, if it is a JSON object. */
  json: Record<string, unknown> | undefined;
}

/** One call over `fetch`: sent once, or once more if the first could not connect; never beyond its deadline. */
export class Transport {
  constructor(
    private readonly url: string,
    private readonly token: string | undefined,
    private readonly timeoutMs: number,
    private readonly send: typeof fetch,
    private readonly clock: Pick<Clock, "monotonicMs">,
  ) {}

  async call(method: "GET" | "POST", path: string, body?: unknown): Promise<Answer> {
    const deadline = this.clock.monotonicMs() + this.timeoutMs;
    // Not AbortSignal.timeout, whose timer would outlive the call and keep all of it in memory.
    const aborter = new AbortController();
    const timer = setTimeout(() => aborter.abort(), this.timeoutMs);
    try {
      return await this.attempts(method, path, body, deadline, aborter.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  private async attempts(method: string, path: string, body: unknown, deadline: number, signal: AbortSignal): Promise<Answer> {
    try {
      return await this.once(method, path, body, deadline, signal);
    } catch (error) {
      if (!neverConnected(error) || this.clock.monotonicMs() >= deadline) throw failure(error, this.timeoutMs, signal);
    }
    try {
      return await this.once(method, path, body, deadline, signal);
    } catch (error) {
      throw failure(error, this.timeoutMs, signal);
    }
  }

  private async once(method: string, path: string, body: unknown, deadline: number, signal: AbortSignal): Promise<Answer> {
    const left = Math.max(1, Math.floor(deadline - this.clock.monotonicMs()));
    const response = await this.send(this.url + path, {
      method,
      headers: {
        accept: "application/problem+json, application/json",
        "request-timeout": `${left}ms`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      redirect: "manual", // the token stays with the server that it is for
      signal,
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: object(text) };
  }
}

function object(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Nothing was sent: the name was not found, or no connection came about. Node says which system call failed. */
function neverConnected(error: unknown): boolean {
  const cause = error instanceof Error ? (error.cause ?? error) : undefined;
  if (typeof cause !== "object" || cause === null) return false;
  const { code, syscall } = cause as { code?: unknown; syscall?: unknown };
  return (
    syscall === "connect" ||
    syscall === "getaddrinfo" ||
    code === "ECONNREFUSED" ||
    code === "ENOTFOUND" ||
    code === "UND_ERR_CONNECT_TIMEOUT" ||
    code === "ConnectionRefused" // Bun
  );
}

function failure(error: unknown, timeoutMs: number, signal: AbortSignal): TollgateError {
  if (signal.aborted) return new TollgateError("timeout", `no answer within ${timeoutMs} ms`, undefined, error);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new TollgateError("unreachable", `no answer: ${message}`, undefined, error);
}
