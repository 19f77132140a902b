import assert from "node:assert/strict";
import { test } from "node:test";
import { tollgate } from "tollgate/fetch";
import { fakeFetch, json } from "./fakes.js";

const ALLOWED = { allowed: true, mode: "store", rule: null, reservation: "tgr_1" };
const FIELDS = { "ratelimit": '"a";r=1;t=1', "server": "not for users" };

function asked(init: RequestInit | undefined): { ip?: string; endpoint?: string } {
  return JSON.parse(String(init?.body)) as { ip?: string; endpoint?: string };
}

test("the peer is what the runtime says, or what the setting reads", async () => {
  const { fetch, calls } = fakeFetch(json(ALLOWED));
  const request = new Request("http://app/a//b?c=d", { headers: { "cf-connecting-ip": "192.0.2.9" } });
  const handler = (): Response => new Response("ok");
  const runtimes: [unknown, string | undefined][] = [
    [{ requestIP: () => ({ address: "192.0.2.1" }) }, "192.0.2.1"],
    [{ requestIP: () => null }, undefined],
    [{ remoteAddr: { transport: "tcp", hostname: "192.0.2.2" } }, "192.0.2.2"],
    [{ incoming: { socket: { remoteAddress: "192.0.2.3" } } }, "192.0.2.3"],
    [{ KV_BINDING: {} }, undefined],
    [undefined, undefined],
  ];
  const limited: (request: Request, ...rest: unknown[]) => Promise<Response> = tollgate({ fetch }, handler);
  for (const [runtime, ip] of runtimes) {
    assert.equal((await limited(request, runtime)).status, 200);
    assert.deepEqual(asked(calls.at(-1)?.init), { endpoint: "GET /a//b", ...(ip === undefined ? {} : { ip }) });
  }
  const address = (request: Request): string => request.headers.get("cf-connecting-ip") ?? "";
  await tollgate({ fetch, address }, handler)(request);
  assert.equal(asked(calls.at(-1)?.init).ip, "192.0.2.9");
});

test("a response whose fields cannot be changed is copied, and the handler gets all that the runtime passes", async () => {
  const { fetch } = fakeFetch(json(ALLOWED, 200, FIELDS));
  const fixed = await globalThis.fetch("data:text/plain,upstream"); // as one of an upstream
  assert.throws(() => fixed.headers.set("a", "b"), TypeError);
  const seen: unknown[] = [];
  const limited = tollgate({ fetch }, (_: Request, env: string, context: number) => {
    seen.push(env, context);
    return fixed;
  });
  const response = await limited(new Request("http://app/"), "env", 7);
  assert.deepEqual(seen, ["env", 7]);
  assert.equal(response.headers.get("ratelimit"), FIELDS.ratelimit);
  assert.equal(response.headers.get("server"), null);
  assert.equal(await response.text(), "upstream");
});

test("what was reserved is settled after the response, by waitUntil where there is one, and with nothing if the handler fails", async () => {
  const { fetch, calls } = fakeFetch(json(ALLOWED), json({ settled: true }), json(ALLOWED), json({ settled: true }));
  const waited: Promise<unknown>[] = [];
  const context = { waitUntil: (promise: Promise<unknown>) => void waited.push(promise) };
  const settings = { fetch, costs: { tokens: 100 }, settle: (_: Request, response: Response) => ({ tokens: response.status }) };
  const limited = tollgate(settings, (request: Request, _env: object, _context: typeof context) => {
    if (request.url.endsWith("/fail")) throw new Error("this handler fails");
    return new Response("ok", { status: 201 });
  });
  assert.equal((await limited(new Request("http://app/"), {}, context)).status, 201);
  await Promise.all(waited);
  assert.deepEqual(JSON.parse(String(calls[1]?.init.body)), { reservation: "tgr_1", costs: { tokens: 201 } });
  await assert.rejects(limited(new Request("http://app/fail"), {}, context), /this handler fails/);
  await Promise.all(waited);
  assert.equal(waited.length, 2);
  assert.deepEqual(JSON.parse(String(calls[3]?.init.body)), { reservation: "tgr_1", costs: { requests: 0, tokens: 0 } });
});
