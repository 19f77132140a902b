import assert from "node:assert/strict";
import { test } from "node:test";
import { Acquirer, NoRoom, retryingFetch } from "tollgate/retry";
import type { Decision } from "tollgate";
import { namedWaitMs } from "#dist/retry/named_time.js";
import { FakeClock, fakeFetch, json } from "./fakes.js";

// The waits themselves are in sdk/conformance/retry.json, for all languages.

const later = (): Response => json({}, 429, { "retry-after": "1" });

test("a fetch comes back when it is told to, with the same body", async () => {
  const clock = new FakeClock();
  const bodies: string[] = [];
  const send = async (request: Request): Promise<Response> => {
    bodies.push(await request.text());
    return bodies.length < 3 ? later() : json({ ok: true });
  };
  const fetch = retryingFetch({ clock, random: () => 0, fetch: send as unknown as typeof globalThis.fetch });
  const response = await fetch("http://api/orders", { method: "POST", body: "an order" });
  assert.equal(response.status, 200);
  assert.deepEqual(bodies, Array(3).fill("an order"));
  assert.equal(clock.now, 1_800_000_002_000);
});

test("an idempotency key is made once for all attempts", async () => {
  const keys: (string | null)[] = [];
  const send = async (request: Request): Promise<Response> => {
    keys.push(request.headers.get("idempotency-key"));
    return json({}, 503);
  };
  const fetch = retryingFetch({ clock: new FakeClock(), idempotencyKeys: true, fetch: send as unknown as typeof globalThis.fetch });
  await fetch("http://api/orders", { method: "POST" });
  assert.equal(keys.length, 3);
  assert.equal(new Set(keys).size, 1);
  assert.match(keys[0] ?? "", /^[0-9a-f-]{36}$/);
});

test("the body of an answer is the caller's, also after it was looked at", async () => {
  const { fetch } = fakeFetch(json({ __type: "ValidationException" }, 400));
  const response = await retryingFetch({ clock: new FakeClock(), fetch })("http://api/");
  assert.deepEqual(await response.json(), { __type: "ValidationException" });
});

test("a caller who goes away is not kept waiting", async () => {
  const { fetch } = fakeFetch(later());
  const controller = new AbortController();
  controller.abort(new Error("gone"));
  await assert.rejects(retryingFetch({ clock: new FakeClock(), fetch })("http://api/", { signal: controller.signal }), /gone/);
});

test("acquire waits until there is room, first come, first served", async () => {
  const clock = new FakeClock();
  const order: number[] = [];
  let freeAt = clock.now;
  const client = {
    check: async ({ cost = 1 }): Promise<Decision> => {
      const wait = freeAt - clock.now;
      if (wait <= 0) freeAt = clock.now + cost * 1_000;
      return { allowed: wait <= 0, retryAfterMs: wait > 0 ? wait : null } as Decision;
    },
  };
  const limiter = new Acquirer(client, { apiKey: "mine" }, clock);
  await Promise.all([3, 1, 2].map(async (units) => order.push((await limiter.acquire(units), units))));
  assert.deepEqual(order, [3, 1, 2]);
  assert.equal(clock.now, 1_800_000_004_000);
  await assert.rejects(limiter.acquire(1, 1_999), NoRoom);
  assert.ok((await limiter.acquire(1, 2_000)).allowed);
});

test("acquire does not wait for what can never be", async () => {
  const client = { check: async () => ({ allowed: false, never: true, retryAfterMs: null }) as Decision };
  await assert.rejects(new Acquirer(client, {}, new FakeClock()).acquire(9), /exceeds/);
});

test("a field of more than 8 KiB is as good as none, and the next one counts", () => {
  const header = (fields: Record<string, string>) => ({ status: 429, header: (name: string) => fields[name] ?? null, body: async () => "" });
  const long = `"a";r=0;t=7${";x".repeat(5_000)}`;
  assert.equal(namedWaitMs(header({ ratelimit: long.slice(0, 8_192) }), 0), 7_000);
  assert.equal(namedWaitMs(header({ ratelimit: long, "ratelimit-reset": "4" }), 0), 4_000);
  assert.equal(namedWaitMs(header({ "retry-after": `7${" ".repeat(9_000)}` }), 0), undefined);
});
