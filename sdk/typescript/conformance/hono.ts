import { Hono } from "hono";
import { type HonoSettings, tollgate } from "tollgate/hono";
import { serveRequests } from "./runtime.js";
import { COMPLETE, ESTIMATE, guardSettings, identity, settled } from "./settings.js";

export async function serveHono(): Promise<number> {
  const app = new Hono();
  const common: HonoSettings = {
    ...guardSettings,
    identify: (context) => identity(context.req.header("x-api-key")?.split(",")),
  };
  app.use(tollgate({ ...common, skip: ({ req }) => req.path === "/health" || req.path.startsWith(COMPLETE) }));
  app.use("/api/complete/*", tollgate({ ...common, costs: ESTIMATE, settle: (_, response) => settled(response.headers.get("x-tokens")) }));

  app.get("/health", (context) => context.text("ok"));
  app.get("/api/orders/:id", (context) => context.json({ order: context.req.param("id") }));
  app.post("/api/orders", (context) => context.json({ created: true }, 201));
  app.get("/api/fail", async () => {
    throw new Error("this handler fails");
  });
  app.post("/api/complete/:tokens", async (context) => {
    const tokens = Number(context.req.param("tokens"));
    if (Number.isNaN(tokens)) throw new Error("this handler fails");
    return context.json({ tokens }, 200, { "X-Tokens": `${tokens}` });
  });
  return serveRequests((request, runtime) => app.fetch(request, runtime as object));
}
