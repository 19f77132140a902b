import { tollgate } from "tollgate/fetch";
import { type Handle, serveRequests } from "./runtime.js";
import { COMPLETE, ESTIMATE, guardSettings, identity, settled } from "./settings.js";

/** A handler of `Request`s without a framework, as edge runtimes take it. */
export async function serveFetch(): Promise<number> {
  const common = { ...guardSettings, identify: (request: Request) => identity(request.headers.get("x-api-key")?.split(",")) };
  const limited: Handle = tollgate({ ...common, skip: (request: Request) => pathname(request) === "/health" }, route);
  const completes: Handle = tollgate({ ...common, costs: ESTIMATE, settle: (_, response) => settled(response.headers.get("x-tokens")) }, complete);
  return serveRequests((request, runtime) => (pathname(request).startsWith(COMPLETE) ? completes : limited)(request, runtime));
}

function route(request: Request): Response {
  const path = pathname(request);
  const read = request.method === "GET" || request.method === "HEAD";
  const order = /^\/api\/orders\/([^/]+)$/.exec(path)?.[1];
  if (read && path === "/health") return new Response("ok");
  if (read && order !== undefined) return Response.json({ order: decodeURIComponent(order) });
  if (request.method === "POST" && path === "/api/orders") return Response.json({ created: true }, { status: 201 });
  if (read && path === "/api/fail") throw new Error("this handler fails");
  return new Response("not found", { status: 404 });
}

function complete(request: Request): Response {
  const tokens = Number(pathname(request).slice(COMPLETE.length));
  if (Number.isNaN(tokens)) throw new Error("this handler fails");
  return Response.json({ tokens }, { headers: { "X-Tokens": `${tokens}` } });
}

function pathname(request: Request): string {
  return new URL(request.url).pathname;
}
