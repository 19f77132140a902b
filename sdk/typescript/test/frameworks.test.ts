import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import express from "express";
import Fastify from "fastify";
import { tollgate as onExpress } from "tollgate/express";
import { tollgate as onFastify } from "tollgate/fastify";
import { json } from "./fakes.js";

const ALLOWED = { allowed: true, mode: "store", rule: null, reservation: "tgr_1" };

interface Call {
  path: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

/** A server of decisions that allows everything, and remembers what it was asked; the answers wait for `open`. */
function limiter(open: Promise<void> = Promise.resolve()): { calls: Call[]; fetch: typeof fetch; asked(path: string): Promise<Call> } {
  const calls: Call[] = [];
  const waiting: (() => void)[] = [];
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    const call = { path: new URL(url).pathname, body: JSON.parse(String(init.body)) };
    calls.push(call);
    waiting.splice(0).forEach((wake) => wake());
    if (call.path !== "/v1/settle") await open;
    return json(call.path === "/v1/settle" ? { settled: true } : ALLOWED);
  };
  const asked = async (path: string): Promise<Call> => {
    for (;;) {
      const call = calls.find((call) => call.path === path);
      if (call !== undefined) return call;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  };
  return { calls, fetch: send as unknown as typeof fetch, asked };
}

/** Sends one request as it is written, and resolves with the answer when the server closes. */
async function raw(server: Server, start: string): Promise<string> {
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.end(`${start} HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n`);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

async function serving(app: express.Express): Promise<Server> {
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

test("Express: the endpoint is what its routers match, below mounts, rewritten, or as an absolute target", async () => {
  const { fetch, calls } = limiter();
  const app = express();
  const middleware = onExpress({ fetch });
  const orders = express.Router();
  orders.use(middleware);
  orders.get("/orders/:id", (request, response) => void response.send(request.params.id));
  app.use((request, _, next) => {
    request.url = request.url.replace(/^\/old/, "/api");
    next();
  });
  app.use("/api", orders);
  app.get("/plain", middleware, (_, response) => void response.send("plain"));
  const server = await serving(app);
  const seen = async (start: string): Promise<string[]> => {
    calls.length = 0;
    await raw(server, start);
    return calls.map((call) => call.body.endpoint);
  };
  assert.deepEqual(await seen("GET /api/orders/1?x=/plain"), ["GET /api/orders/1"]);
  assert.deepEqual(await seen("GET /API/Orders/1/"), ["GET /api/orders/1/"]);
  assert.deepEqual(await seen("GET /old/orders/1"), ["GET /api/orders/1"]);
  assert.deepEqual(await seen("GET http://other/api/orders/1?x"), ["GET /api/orders/1"]);
  assert.deepEqual(await seen("HEAD /plain"), ["GET /plain"]);
  assert.deepEqual(await seen("GET /plain#x"), ["GET /plain"]);
  assert.deepEqual(await seen("GET /api/orders/.."), [], "a dot segment is answered without a call");
  server.close();
});

test("Express: errors of handlers and of identify are the application's, and what was reserved is settled", async () => {
  const { fetch, asked } = limiter();
  const app = express();
  app.use("/throws", onExpress({ fetch, costs: { tokens: 9 }, settle: () => ({ tokens: 0 }) }), async () => {
    throw new Error("the handler fails");
  });
  app.use("/who", onExpress({ fetch, identify: () => Promise.reject(new Error("no directory")) }), (_, response) => void response.send("never"));
  app.use((error: Error, _request: express.Request, response: express.Response, _next: express.NextFunction) => void response.status(500).send(error.message));
  const server = await serving(app);
  assert.match(await raw(server, "GET /throws"), /^HTTP\/1.1 500[^]*the handler fails$/);
  assert.deepEqual((await asked("/v1/settle")).body, { reservation: "tgr_1", costs: { tokens: 0 } });
  assert.match(await raw(server, "GET /who"), /^HTTP\/1.1 500[^]*no directory$/);
  server.close();
});

/** A caller who goes away while the limiter is asked. */
async function leaves(server: Server, asked: (path: string) => Promise<Call>, open: () => void): Promise<Call> {
  const gone = new Promise<void>((resolve) => server.once("connection", (connection) => connection.once("close", () => resolve())));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write("POST /complete HTTP/1.1\r\nHost: app\r\nContent-Length: 0\r\n\r\n");
  await asked("/v1/reserve");
  socket.destroy();
  await gone;
  open();
  return asked("/v1/settle");
}

test("Express: a caller who goes away meanwhile gets everything back, and no handler runs", async () => {
  let open = (): void => {};
  const { fetch, asked } = limiter(new Promise((resolve) => (open = resolve)));
  let handled = 0;
  const app = express();
  app.use(onExpress({ fetch, timeoutMs: 30_000, costs: { tokens: 9 }, settle: () => ({ tokens: 9 }) }));
  app.post("/complete", (_, response) => void response.send(`${(handled += 1)}`));
  const server = await serving(app);
  const settled = await leaves(server, asked, open);
  assert.deepEqual(settled.body.costs, { requests: 0, tokens: 0 });
  assert.equal(handled, 0);
  server.close();
});

test("Fastify: the same", async () => {
  let open = (): void => {};
  const { fetch, asked } = limiter(new Promise((resolve) => (open = resolve)));
  let handled = 0;
  const app = Fastify();
  await app.register(onFastify, { fetch, timeoutMs: 30_000, costs: { tokens: 9 }, settle: () => ({ tokens: 9 }) });
  app.post("/complete", async () => `${(handled += 1)}`);
  await app.listen({ port: 0, host: "127.0.0.1" });
  const settled = await leaves(app.server, asked, open);
  assert.deepEqual(settled.body.costs, { requests: 0, tokens: 0 });
  assert.equal(handled, 0);
  await app.close();
});

test("Fastify: the endpoint follows its router, which may fold case and end paths at a semicolon", async () => {
  const settings = [
    { useSemicolonDelimiter: true, caseSensitive: false },
    { useSemicolonDelimiter: true, routerOptions: { caseSensitive: false } },
    { caseSensitive: false, routerOptions: { useSemicolonDelimiter: true } as object },
  ];
  for (const options of settings) {
    const { fetch, calls } = limiter();
    const app = Fastify(options);
    await app.register(onFastify, { fetch });
    app.get<{ Params: { id: string } }>("/api/keys/:id", async (request) => request.params.id);
    await app.listen({ port: 0, host: "127.0.0.1" });
    const answer = await raw(app.server, "GET /API/%E2%84%AAeys/1;v=2");
    assert.match(answer, /^HTTP\/1.1 200[^]*\r\n1$/);
    assert.deepEqual(calls.map((call) => call.body.endpoint), ["GET /api/keys/1"]);
    await app.close();
  }
});
