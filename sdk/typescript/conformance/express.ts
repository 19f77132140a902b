import express from "express";
import type { AddressInfo } from "node:net";
import { tollgate } from "tollgate/express";
import { COMPLETE, ESTIMATE, guardSettings, identity, settled } from "./settings.js";

export async function serveExpress(): Promise<number> {
  const app = express();
  const common = { ...guardSettings, identify: (request: express.Request) => identity(request.headersDistinct["x-api-key"]) };
  const completes = (path: string): boolean => path.toLowerCase().startsWith(COMPLETE);
  app.use(tollgate({ ...common, skip: (request) => request.path === "/health" || completes(request.path) }));
  app.use("/api/complete", tollgate({ ...common, costs: ESTIMATE, settle: (_, response: express.Response) => settled(response.getHeader("x-tokens") as string) }));

  app.get("/health", (_, response) => void response.type("text").send("ok"));
  app.get("/api/orders/:id", (request, response) => void response.json({ order: request.params.id }));
  app.post("/api/orders", (_, response) => void response.status(201).json({ created: true }));
  app.get("/api/fail", async () => {
    throw new Error("this handler fails");
  });
  app.post("/api/complete/:tokens", async (request, response) => {
    const tokens = Number(request.params.tokens);
    if (Number.isNaN(tokens)) throw new Error("this handler fails");
    response.set("X-Tokens", `${tokens}`).json({ tokens });
  });
  const server = app.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return (server.address() as AddressInfo).port;
}
