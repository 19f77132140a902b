// Pictures of every page in both themes and at phone width, of a server with some traffic: script/screenshots.
"use strict";

const path = require("node:path");
const { launch, open, signIn, api, check } = require("./browser");

const PAGES = {
  overview: "/",
  rules: "/console/rules",
  rule: "/console/rule?id=exports",
  edit: "/console/rule/edit?id=orders-per-user",
  clients: "/console/clients",
  client: "/console/client?key=user:night-shift",
  explain: "/console/explain?request=client_key%3Duser%3Anight-shift%20POST%20%2Flogin",
  "what-if": "/console/what-if?rule=logins&requests=10",
  history: "/console/audit",
  access: "/console/access",
  system: "/console/system",
  nodes: "/console/nodes",
  "light-client": "/console/client?key=user:newcomer",
  "data-api": "/console/data-api",
  "file-rule": "/console/rule?id=logins",
  docs: "/docs",
};
const WINDOWS = [
  ["light", { viewport: { width: 1280, height: 900 }, colorScheme: "light" }],
  ["dark", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 }, colorScheme: "light", deviceScaleFactor: 2 }],
];

/** Something to look at: rules, clients, an override, and a minute of requests. */
async function play(seconds) {
  await api("POST", "/v1/rules", { rule_id: "orders-per-user", match: { endpoint: "POST /api/orders", tier: "free" }, key_by: "user_id", limit: { requests: 20, window: "1m" } });
  await api("POST", "/v1/rules", { rule_id: "exports", name: "Exports", match: { endpoint: "/api/export/*" }, key_by: "api_key", mode: "shadow", limit: { requests: 6, window: "1m", algorithm: "sliding_window" } });
  await api("PATCH", "/v1/rules/orders-per-user", { limit: { requests: 30 } });
  for (const [key, tier, organisation] of [["key:acme-prod", "paid", "acme"], ["key:acme-test", "free", "acme"], ["key:globex", "paid", "globex"], ["user:night-shift", "free", "acme"]]) {
    await api("POST", "/v1/clients", { client_key: key, tier, organisation });
  }
  const until = new Date(Date.now() + 7_200_000).toISOString();
  await api("POST", "/v1/overrides", { client_key: "user:migration", rule_id: "orders-per-user", max_requests: 500, valid_until: until, reason: "data migration, ticket 4711" });
  const random = (() => { let seed = 7; return (most) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 65536) % most; }; })();
  const end = performance.now() + seconds * 1000;
  for (let turn = 0; performance.now() < end; turn += 1) {
    const user = `user:${["ada", "grace", "linus", "edsger", "barbara", "ken", "dennis", "margaret"][random(8)]}-${random(12)}`;
    const requests = [
      { client_key: user, endpoint: "GET /api/items" },
      { client_key: user, endpoint: "GET /search" },
      { client_key: user, user_id: user.slice(5), tier: "free", endpoint: "POST /api/orders" },
      { api_key: ["acme-prod", "acme-test", "globex"][random(3)], endpoint: "GET /api/export/users" },
    ];
    const burst = [];
    for (let one = 0; one < 3 + random(12); one += 1) burst.push(check(requests[random(requests.length)]));
    if (turn % 5 === 0) burst.push(check({ client_key: "user:night-shift", endpoint: "POST /login" }));
    if (turn % 23 === 0) burst.push(check({ client_key: "ip:203.0.113.9", endpoint: "POST /login" }));
    await Promise.all(burst);
    await new Promise((resume) => setTimeout(resume, 20 + random(60)));
  }
}

async function main() {
  const [directory, seconds, ...wanted] = process.argv.slice(2);
  await play(Number(seconds));
  const browser = await launch();
  for (const [name, options] of WINDOWS) {
    const { page, context, problems } = await open(browser, options);
    await page.goto("/console/sign-in");
    await page.screenshot({ path: path.join(directory, `sign-in-${name}.png`) });
    await signIn(page);
    for (const [title, address] of Object.entries(PAGES)) {
      if (wanted.length > 0 && !wanted.includes(title)) continue;
      await page.goto(address);
      const fullPage = !["docs", "overview"].includes(title) || name === "phone";
      await page.screenshot({ path: path.join(directory, `${title}-${name}.png`), fullPage });
    }
    if (wanted.length === 0 || wanted.includes("review")) {
      await page.goto("/console/rule/edit?id=orders-per-user");
      const source = page.getByLabel("Rule", { exact: true });
      await source.fill((await source.inputValue()).replace("requests: 30", "requests: 3"));
      await page.getByRole("button", { name: "Review the change" }).click();
      await page.getByRole("heading", { name: "Review the change" }).waitFor();
      await page.screenshot({ path: path.join(directory, `review-${name}.png`), fullPage: true });
    }
    if (problems.length > 0) throw new Error(problems.join("\n"));
    await context.close();
  }
  await browser.close();
}

main();
