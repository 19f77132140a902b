import assert from "node:assert/strict";
import { test } from "node:test";
import { type CheckRequest, type Decision, Tollgate, TollgateError } from "tollgate";
import { FakeClock, fakeFetch, json, refused } from "./fakes.js";

const ALLOWED = { allowed: true, limit: 3, remaining: 2, reset_at: 5, retry_after: null, retry_after_ms: null, rule: "a", mode: "store" };
const quiet = { url: "http://limiter", log: false } as const;

test("a request travels in snake case, a decision comes back in camel case", async () => {
  const { fetch, calls } = fakeFetch(json({ ...ALLOWED, violated_rule: { window_seconds: 1 } }));
  const client = new Tollgate({ ...quiet, token: "secret", fetch, clock: new FakeClock() });
  const decision = await client.check({ apiKey: "k", endpoint: "GET /", costs: { output_tokens: 1 }, attributes: { some_region: "eu" } });
  assert.equal(decision.resetAt, 5);
  assert.deepEqual(decision.violatedRule, { windowSeconds: 1 });
  const { url, init } = calls[0] ?? assert.fail();
  assert.equal(url, "http://limiter/v1/check");
  assert.deepEqual(JSON.parse(String(init.body)), {
    api_key: "k",
    endpoint: "GET /",
    costs: { output_tokens: 1 },
    attributes: { some_region: "eu" },
  });
  assert.deepEqual(init.headers, {
    accept: "application/problem+json, application/json",
    "request-timeout": "250ms",
    "content-type": "application/json",
    authorization: "Bearer secret",
  });
  assert.equal(init.redirect, "manual");
});

test("a call that could not connect is sent once more, another failure never", async () => {
  const again = fakeFetch(refused(), json(ALLOWED));
  const clock = new FakeClock();
  assert.equal((await new Tollgate({ ...quiet, fetch: again.fetch, clock }).check({ ip: "::1" })).mode, "store");
  const twice = fakeFetch(refused());
  assert.equal((await new Tollgate({ ...quiet, fetch: twice.fetch, clock }).check({ ip: "::1" })).mode, "open");
  assert.equal(twice.calls.length, 2);
  const cut = fakeFetch(new TypeError("fetch failed", { cause: Object.assign(new Error("reset"), { code: "ECONNRESET", syscall: "read" }) }));
  assert.equal((await new Tollgate({ ...quiet, fetch: cut.fetch, clock }).check({ ip: "::1" })).mode, "open");
  assert.equal(cut.calls.length, 1);
});

test("after five failures the server is left alone for 1 s, 2 s, 4 s …, 30 s at most, and one call tries it", async () => {
  const clock = new FakeClock();
  const down = fakeFetch(json({}, 500));
  const client = new Tollgate({ ...quiet, fetch: down.fetch, clock });
  const ask = async (): Promise<number> => {
    await client.check({ ip: "::1" });
    return down.calls.length;
  };
  for (let call = 1; call <= 5; call += 1) assert.equal(await ask(), call);
  let calls = 5;
  for (const pause of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    clock.now += pause - 1;
    assert.equal(await ask(), calls, `${pause - 1} ms after the last failure`);
    clock.now += 1;
    assert.equal(await ask(), ++calls, `${pause} ms after the last failure`);
    assert.equal(await ask(), calls);
  }
});

test("an answer closes the circuit again", async () => {
  const clock = new FakeClock();
  const { fetch, calls } = fakeFetch(...Array<Response>(5).fill(json({}, 502)), json(ALLOWED));
  const client = new Tollgate({ ...quiet, fetch, clock });
  for (let call = 0; call < 6; call += 1) await client.check({ ip: "::1" });
  assert.equal(calls.length, 5);
  clock.now += 1_000;
  for (let call = 0; call < 3; call += 1) assert.equal((await client.check({ ip: "::1" })).mode, "store");
});

test("errors of single requests do not open the circuit", async () => {
  const { fetch, calls } = fakeFetch(json({ code: "bad_address", detail: "no address" }, 400));
  const client = new Tollgate({ ...quiet, fetch, clock: new FakeClock() });
  for (let call = 0; call < 9; call += 1) assert.equal((await client.check({ ip: "x" })).mode, "open");
  assert.equal(calls.length, 9);
});

test("the cause goes to the hook each time, and to the log once in ten seconds", async () => {
  const clock = new FakeClock();
  const causes: string[] = [];
  const lines: string[] = [];
  const client = new Tollgate({
    url: "http://limiter",
    fetch: fakeFetch(json({ code: "no_token", detail: "no token" }, 401)).fetch,
    clock,
    onFailure: (error) => causes.push(error.code),
    log: (line) => lines.push(line),
  });
  for (let call = 0; call < 3; call += 1) await client.check({ ip: "::1" });
  clock.now += 10_000;
  await client.check({ ip: "::1" });
  assert.deepEqual(causes, Array(4).fill("no_token"));
  assert.equal(lines.length, 2);
});

test("a batch keeps its order, and an item without a decision gets that of the policy, unless it is malformed", async () => {
  const outcome = (result: Decision | TollgateError) => (result instanceof TollgateError ? result.code : result.mode);
  const malformed = { status: 400, code: "path_too_long", field: "endpoint", detail: "no" };
  const { fetch } = fakeFetch(json({ results: [ALLOWED, { status: 400, code: "bad_address", detail: "no" }, malformed] }));
  const client = new Tollgate({ ...quiet, onError: "closed", fetch, clock: new FakeClock() });
  const results = await client.checkBatch([{ ip: "::1" }, { ip: "x" }, { endpoint: "/" }]);
  assert.deepEqual(results.map(outcome), ["store", "closed", "path_too_long"]);
  const short = new Tollgate({ ...quiet, fetch: fakeFetch(json({ results: [ALLOWED] })).fetch, clock: new FakeClock() });
  assert.deepEqual((await short.checkBatch([{ ip: "::1" }, { ip: "::2" }])).map(outcome), ["open", "open"]);
  assert.deepEqual(await short.checkBatch([]), []);
});

test("a malformed request of a batch has its error, and the others their decisions", async () => {
  const { fetch, calls } = fakeFetch(json({ results: [ALLOWED, { ...ALLOWED, allowed: false }] }));
  const client = new Tollgate({ ...quiet, fetch, clock: new FakeClock() });
  const results = await client.checkBatch([{ userId: "\udc00" }, { ip: "::1" }, { endpoint: `/${"a".repeat(9000)}` }, { ip: "::2" }]);
  const shown = results.map((result) => (result instanceof TollgateError ? result.code : result.allowed));
  assert.deepEqual(shown, ["bad_text", true, "path_too_long", false]);
  assert.deepEqual(JSON.parse(String(calls[0]?.init.body)), { requests: [{ ip: "::1" }, { ip: "::2" }] });
});

test("what the server cannot read is no reason to let a request pass, and is not sent", async () => {
  const { fetch, calls } = fakeFetch(json(ALLOWED));
  const client = new Tollgate({ ...quiet, fetch, clock: new FakeClock() });
  const requests: [CheckRequest, string][] = [
    [{ endpoint: `GET /${"a".repeat(8192)}` }, "path_too_long"],
    [{ endpoint: `GET /${"é".repeat(4096)}` }, "path_too_long"],
    [{ userId: "a".repeat(4097) }, "value_too_long"],
    [{ userId: "€".repeat(1366) }, "value_too_long"],
    [{ attributes: { region: "a".repeat(4097) } }, "value_too_long"],
    [{ userId: "\ud800" }, "bad_text"],
  ];
  for (const [request, code] of requests) {
    await assert.rejects(client.check(request), (error: unknown) => error instanceof TollgateError && error.malformedEndpoint && error.code === code);
  }
  assert.equal(calls.length, 0);
  await client.check({ endpoint: `GET /${"a".repeat(8191)}?${"b".repeat(50)}`, userId: "€".repeat(1365) });
  const proxied = new Tollgate({ ...quiet, fetch: fakeFetch(new Response("too large", { status: 413 })).fetch, clock: new FakeClock() });
  await assert.rejects(proxied.check({ ip: "::1" }), (error: unknown) => error instanceof TollgateError && error.malformedEndpoint);
});

test("what the fail policy cannot decide is an error with the server's code", async () => {
  const client = new Tollgate({ ...quiet, fetch: fakeFetch(json({ code: "replaced_receipt", detail: "…" }, 409)).fetch, clock: new FakeClock() });
  await assert.rejects(client.settle("tgr_x", { requests: 1 }), (error: unknown) => error instanceof TollgateError && error.code === "replaced_receipt");
});

test("local without a limit is a mistake that is said at once", () => {
  assert.throws(() => new Tollgate({ onError: "local" }), /fallback/);
  assert.throws(() => new Tollgate({ fallback: "many/1m" as never }), /100\/1m/);
});

test("members are what their names say, whatever the names", async () => {
  const { fetch } = fakeFetch(new Response('{"allowed":true,"mode":"store","__proto__":{"allowed":false},"constructor":1,"attributes":{"a_b":{"c_d":1}},"retry_after_ms":7}'));
  const decision = (await new Tollgate({ fetch }).check({ apiKey: "a" })) as unknown as Record<string, unknown>;
  assert.equal(Object.getPrototypeOf(decision), Object.prototype);
  assert.deepEqual(Object.entries(decision), [
    ["allowed", true],
    ["mode", "store"],
    ["_Proto__", { allowed: false }],
    ["constructor", 1],
    ["attributes", { a_b: { c_d: 1 } }],
    ["retryAfterMs", 7],
  ]);
});

test("a call leaves no timer behind", async () => {
  const before = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const { fetch } = fakeFetch(json({ allowed: true, mode: "store" }), refused());
  const client = new Tollgate({ fetch, timeoutMs: 3_600_000, log: false });
  assert.equal((await client.check({ apiKey: "a" })).mode, "store");
  assert.equal((await client.check({ apiKey: "a" })).mode, "open");
  assert.equal(process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length, before);
});
