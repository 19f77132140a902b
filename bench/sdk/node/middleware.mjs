// What middleware adds to a request of Express: CPU time of this process, the application called in place, without sockets.
// express-rate-limit counts in this process; Tollgate does so while no server is there, and else asks one over loopback.
import express from "express";
import { rateLimit } from "express-rate-limit";
import inject from "light-my-request";
import { tollgate } from "tollgate/express";

const [url, count] = process.argv.slice(2);
const requests = Number(count);
const ROUNDS = 9;

function application(middleware) {
  const app = express();
  if (middleware) app.use(middleware);
  app.get("/api/orders/:id", (request, response) => void response.json({ order: request.params.id }));
  return app;
}

const common = { timeoutMs: 10_000, log: false, token: undefined };
const candidates = {
  express: application(),
  "express tollgate, in process": application(tollgate({ ...common, url: "http://127.0.0.1:1", fallback: "1000000000/1m" })),
  "express express-rate-limit": application(rateLimit({ windowMs: 60_000, limit: 1_000_000_000, standardHeaders: "draft-8", legacyHeaders: true })),
  "express tollgate, asks a server": application(tollgate({ ...common, url })),
};

const times = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]));
for (let round = 0; round <= ROUNDS; round += 1) {
  for (const [name, app] of Object.entries(candidates)) {
    const start = process.cpuUsage();
    for (let number = 0; number < requests; number += 1) {
      const remoteAddress = `10.0.${Math.floor(number / 250) % 40}.${number % 250}`;
      const { statusCode } = await inject(app, { method: "GET", url: "/api/orders/7", remoteAddress });
      if (statusCode !== 200) throw new Error(`${name} answered ${statusCode}`);
    }
    const { user, system } = process.cpuUsage(start);
    if (round > 0) times[name].push(((user + system) * 1000) / requests); // the first one opens connections and the circuit
  }
}
for (const [name, rounds] of Object.entries(times)) console.log(`${name}\t${rounds.sort((a, b) => a - b)[ROUNDS >> 1].toFixed(0)}`);
process.exit(0);
