import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { tollgate } from "tollgate/next";
import { guardSettings, identity } from "./settings.js";

/** The middleware's function between a server of `Request`s and an application, as Next runs it. */
export async function serveNext(): Promise<number> {
  const peers = new WeakMap<Request, string>();
  const middleware = tollgate({
    ...guardSettings,
    identify: (request) => identity(request.headers.get("x-api-key")?.split(",")),
    address: (request) => peers.get(request),
    skip: (request) => new URL(request.url).pathname === "/health",
  });
  const app = new Hono();
  app.get("/health", (context) => context.text("ok"));
  app.get("/api/orders/:id", (context) => context.json({ order: context.req.param("id") }));
  app.post("/api/orders", (context) => context.json({ created: true }, 201));
  app.get("/api/fail", async () => {
    throw new Error("this handler fails");
  });

  const handle = async (request: Request, bindings: { incoming: { socket: { remoteAddress?: string } } }): Promise<Response> => {
    peers.set(request, bindings.incoming.socket.remoteAddress ?? "");
    const answer = await middleware(request);
    if (!answer.headers.has("x-middleware-next")) return answer;
    const response = await app.fetch(request);
    for (const [name, value] of answer.headers) if (name !== "x-middleware-next") response.headers.set(name, value);
    return response;
  };
  return new Promise((resolve) => serve({ fetch: handle as never, port: 0, hostname: "127.0.0.1" }, ({ port }) => resolve(port)));
}
