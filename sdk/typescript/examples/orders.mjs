// An API with keys, a route that costs more, and a health check:
//   tollgate serve --rules ../../examples/rules.yaml & npm run build && node examples/orders.mjs
//   curl -si http://127.0.0.1:3000/api/orders/7 -H 'X-API-Key: key-of-alice'
import express from "express";
import { tollgate } from "tollgate/express";

const accounts = new Map([
  ["key-of-alice", { userId: "alice", tier: "free" }],
  ["key-of-acme", { userId: "acme", org: "acme", tier: "paid" }],
]);

const app = express();
app.use((request, response, next) => {
  request.account = accounts.get(request.get("x-api-key"));
  if (request.account === undefined && request.path !== "/health") return response.status(401).json({ error: "no such key" });
  next();
});
app.use(
  tollgate({
    identify: (request) => request.account,
    skip: (request) => request.path === "/health",
    cost: (request) => (request.path.startsWith("/export/") ? 3 : 1),
    onDecision: ({ allowed, rule, remaining, mode }) => console.log({ allowed, rule, remaining, mode }),
    fallback: "100/1m",
  }),
);

app.get("/health", (_, response) => response.send("ok"));
app.get("/api/orders/:id", (request, response) => response.json({ order: request.params.id }));
app.get("/export/:name", (request, response) => response.json({ export: request.params.name }));

const server = app.listen(process.env.PORT ?? 3000, "127.0.0.1", () => console.log(`port ${server.address().port}`));
