import { Retry, type RetrySettings } from "./retry.js";
import type { Reply } from "./reply.js";

const BODY_BYTES_MAX = 65_536;

export interface RetryFetchSettings extends RetrySettings {
  /** Gives POST and PATCH an `Idempotency-Key`, so that they may be repeated; only for servers that know it. */
  idempotencyKeys?: boolean | undefined;
  fetch?: typeof fetch | undefined;
}

class FetchReply implements Reply {
  constructor(readonly response: Response) {}

  get status(): number {
    return this.response.status;
  }

  header(name: string): string | null {
    return this.response.headers.get(name);
  }

  async body(): Promise<string> {
    const reader = this.response.clone().body?.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (let bytes = 0; reader !== undefined && bytes < BODY_BYTES_MAX; ) {
      const { done, value } = await reader.read();
      if (done) return text;
      bytes += value.byteLength;
      text += decoder.decode(value, { stream: true });
    }
    void reader?.cancel();
    return text;
  }
}

/** A `fetch` that comes back when it is told "later". One for each server that is called. */
export function retryingFetch(settings: RetryFetchSettings = {}): typeof fetch {
  const retry = new Retry(settings);
  const send = settings.fetch ?? ((input, init) => fetch(input, init));
  return async (input, init) => {
    const request = new Request(input, init);
    const unsafe = request.method === "POST" || request.method === "PATCH";
    if (settings.idempotencyKeys && unsafe && !request.headers.has("idempotency-key")) {
      request.headers.set("idempotency-key", crypto.randomUUID());
    }
    const call = { method: request.method, idempotent: request.headers.has("idempotency-key"), signal: request.signal };
    let last: Response | undefined;
    const reply = await retry.run(call, async () => {
      await last?.body?.cancel(); // gives its connection back
      last = await send(request.clone());
      return new FetchReply(last);
    });
    return reply.response;
  };
}
