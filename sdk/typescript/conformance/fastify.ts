import Fastify from "fastify";
import type { AddressInfo } from "node:net";
import { type FastifySettings, tollgate } from "tollgate/fastify";
import { ESTIMATE, guardSettings, identity, settled } from "./settings.js";

export async function serveFastify(): Promise<number> {
  const app = Fastify();
  const common: FastifySettings = { ...guardSettings, identify: (request) => identity(request.raw.headersDistinct["x-api-key"]) };
  await app.register(async (orders) => {
    await orders.register(tollgate, { ...common, skip: (request) => request.routeOptions.url === "/health" });
    orders.get("/health", async () => "ok");
    orders.get<{ Params: { id: string } }>("/api/orders/:id", async (request) => ({ order: request.params.id }));
    orders.post("/api/orders", async (_, reply) => reply.code(201).send({ created: true }));
    orders.get("/api/fail", async () => {
      throw new Error("this handler fails");
    });
  });
  await app.register(async (completions) => {
    await completions.register(tollgate, { ...common, costs: ESTIMATE, settle: (_, reply) => settled(reply.getHeader("x-tokens")) });
    completions.post<{ Params: { tokens: string } }>("/api/complete/:tokens", async (request, reply) => {
      const tokens = Number(request.params.tokens);
      if (Number.isNaN(tokens)) throw new Error("this handler fails");
      return reply.header("X-Tokens", `${tokens}`).send({ tokens });
    });
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  return (app.server.address() as AddressInfo).port;
}
