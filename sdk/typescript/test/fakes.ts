import type { Clock } from "tollgate";

/** A clock that moves only by sleeping, and at once. */
export class FakeClock implements Clock {
  now = 1_800_000_000_000;

  monotonicMs(): number {
    return this.now;
  }

  wallMs(): number {
    return this.now;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.now += ms;
  }
}

/** A `fetch` that answers with these, one after the other; an error is thrown. The last one again and again. */
export function fakeFetch(...answers: (Response | Error)[]): { fetch: typeof fetch; calls: { url: string; init: RequestInit }[] } {
  const calls: { url: string; init: RequestInit }[] = [];
  const send = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    calls.push({ url: String(url instanceof Request ? url.url : url), init });
    const answer = answers[Math.min(calls.length, answers.length) - 1];
    if (answer instanceof Error) throw answer;
    return (answer ?? new Response()).clone();
  };
  return { fetch: send as typeof fetch, calls };
}

export function json(body: object, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });
}

/** What Node's `fetch` throws when there is no connection. */
export function refused(): Error {
  return new TypeError("fetch failed", { cause: Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", syscall: "connect" }) });
}
