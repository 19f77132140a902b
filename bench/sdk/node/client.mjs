// What a check costs a program on Node or Bun, beside the call that people write by hand: CPU time of this process per call.
// One connection, one call at a time, the same request. Candidates take turns; each line is a row: name, median.
import { Tollgate } from "tollgate";

const [url, count] = process.argv.slice(2);
const calls = Number(count);
const FIELDS = { apiKey: "abc", endpoint: "GET /api/orders/7" };
const ROUNDS = 9;

const client = new Tollgate({ url, timeoutMs: 10_000, token: undefined });

async function plain() {
  const response = await fetch(`${url}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ api_key: FIELDS.apiKey, endpoint: FIELDS.endpoint }),
  });
  return (await response.json()).allowed;
}

const runtime = "Bun" in globalThis ? "bun" : "node";
const candidates = { [`${runtime} fetch`]: plain, [`${runtime} client`]: async () => (await client.check(FIELDS)).allowed };
const times = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, call] of Object.entries(candidates)) {
    const start = process.cpuUsage();
    for (let number = 0; number < calls; number += 1) if (!(await call())) throw new Error("refused");
    const { user, system } = process.cpuUsage(start);
    times[name].push(((user + system) * 1000) / calls);
  }
}
for (const [name, rounds] of Object.entries(times)) console.log(`${name}\t${rounds.sort((a, b) => a - b)[ROUNDS >> 1].toFixed(0)}`);
