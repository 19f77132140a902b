import { type Reply, Retry, Throttled } from "tollgate/retry";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Line = any;

/** One or several calls on a fake clock: their waits, and the status that the caller gets. */
export async function retried(line: Line): Promise<object> {
  let now: number = line.now_ms;
  let waits: number[] = [];
  let draws = 0;
  const responses: Line[] = [...line.responses];
  const clock = {
    monotonicMs: () => now,
    wallMs: () => now,
    sleep: async (ms: number) => {
      waits.push(ms);
      now += ms;
    },
  };
  const { attempts, base_ms, cap_ms, jitter, deadline_ms, adaptive } = line.options;
  const random = (): number => line.random[Math.min(draws++, line.random.length - 1)];
  const retry = new Retry({ attempts, baseMs: base_ms, capMs: cap_ms, jitter, deadlineMs: deadline_ms, adaptive, clock, random });

  const calls: object[] = [];
  const keys: string[] = [];
  const call = { method: line.method ?? "GET", idempotent: line.idempotency_key !== undefined };
  for (let index = 0; index < (line.calls ?? 1); index += 1) {
    if (index > 0) now += line.every_ms ?? 0;
    waits = [];
    const status = await retry
      .run(call, async () => {
        const response = responses.shift();
        now += response.took_ms ?? 0;
        keys.push(line.idempotency_key);
        return reply(response);
      })
      .then((last) => last.status, (error: unknown) => (error instanceof Throttled ? 0 : Promise.reject(error)));
    calls.push({ waits_ms: waits, status });
  }
  if (line.calls !== undefined) return { calls };
  return { ...calls[0], ...(call.idempotent ? { keys } : {}) };
}

function reply(response: Line): Reply {
  const headers = new Headers(response.headers);
  return { status: response.status, header: (name) => headers.get(name), body: async () => response.body ?? "" };
}
