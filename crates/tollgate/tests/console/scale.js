// The console over many rules and clients: how long searches and pages take, as a table. Started by script/console-scale.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { DatabaseSync } = require("node:sqlite");
const { start, browserOf } = require("./server");

const [program, directory, rules, clients] = process.argv.slice(2);
const SEARCH_MS_MAX = 300;
const LOAD_MS_MAX = 1000;
const TURNS = 20;
/** What is typed, and what must be found: a part of a name that is rare, one that is common, an endpoint, a client, and nothing at all. */
const SEARCHES = [["rule-07", "rule-07"], ["rule", "rule-00"], ["service-0042", "rule-00042"], ["user:00012", "user:00012"], ["user:0", "user:00000"], ["xyz-none", "Everything about"]];

/** Rows as imports have left them: written under the mark of Tollgate's own transactions, so that no audit is made of each. */
function fill() {
  const database = new DatabaseSync(path.join(directory, "state/tollgate.db"));
  database.exec(`
    BEGIN;
    UPDATE tollgate_state SET writing = 1;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${Number(rules)})
    INSERT INTO rate_limit_rules (rule_id, endpoint, key_by, algorithm, max_requests, window_secs)
    SELECT printf('rule-%05d', i), printf('GET /api/service-%04d/items-%d', i % 1000, i), 'user_id', 'sliding_window_counter', 100, 60 FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${Number(clients)})
    INSERT INTO clients (client_key, tier, organisation)
    SELECT printf('user:%07d', i), CASE i % 3 WHEN 0 THEN 'paid' ELSE 'free' END, printf('org-%04d', i % 5000) FROM n;
    UPDATE tollgate_state SET writing = 0, generation = generation + 1;
    COMMIT;`);
  database.close();
}

/** The middle and the longest of so many times, each after what has to be so before. */
async function times(run, prepare = () => {}) {
  const all = [];
  for (let turn = 0; turn < TURNS; turn += 1) {
    await prepare();
    const begun = performance.now();
    await run();
    all.push(performance.now() - begun);
  }
  all.sort((a, b) => a - b);
  return { median: all[Math.floor(all.length / 2)], longest: all.at(-1) };
}

function row(what, { median, longest }) {
  console.log(`| ${what} | ${median.toFixed(0)} | ${longest.toFixed(0)} |`);
  return longest;
}

async function main() {
  let running = await start(program, directory);
  await running.end();
  fill();
  const begun = performance.now();
  running = await start(program, directory, running);
  const { launch, open, signIn, api } = browserOf(running, directory);
  const browser = await launch();
  try {
    const { page, context } = await open(browser);
    await signIn(page);
    const listed = (await api("GET", "/v1/rules?search=rule-00001")).json.rules.length;
    const known = (await api("GET", `/v1/clients?prefix=user:${String(clients).padStart(7, "0")}`)).json.clients.length;
    if (listed !== 1 || known !== 1) throw new Error(`${listed} rules and ${known} clients of that name`);
    const bytes = fs.readFileSync(`/proc/${running.pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)[1];
    console.log(`The server listened after ${((performance.now() - begun) / 1000).toFixed(1)} s, its pages included, with ${Math.round(bytes / 1024)} MiB resident.\n`);
    console.log("| | median ms | longest ms |\n|---|---|---|");
    const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
    const get = (target, expected = "") => async () => {
      const response = await fetch(running.admin + target, { headers: { cookie }, redirect: "error" });
      const text = await response.text();
      if (!response.ok || !text.includes(expected)) throw new Error(`${target}: ${response.status}, without ${expected}`);
    };
    let longest = 0;
    const loads = await times(async () => {
      await page.goto("/");
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.locator("main[data-live]").waitFor();
    });
    if (row("in the browser, the overview loaded and usable", loads) > LOAD_MS_MAX) process.exitCode = 1;
    for (const [wanted, expected] of SEARCHES) {
      longest = Math.max(longest, row(`search of all pages: \`${wanted}\``, await times(get(`/console/search?part=list&q=${encodeURIComponent(wanted)}`, expected))));
    }
    longest = Math.max(longest, row("rules that have `service-0042`", await times(get("/console/rules?part=list&search=service-0042", "rule-00042"))));
    longest = Math.max(longest, row("clients that begin with `user:00099`", await times(get("/console/clients?part=list&prefix=user:00099", "user:00099"))));
    longest = Math.max(longest, row("clients of the tier `paid`", await times(get("/console/clients?part=list&tier=paid", "user:"))));
    for (const target of ["/", "/console/rules", "/console/rule?id=rule-05000", "/console/clients", "/console/client?key=user:0500000", "/console/what-if", "/console/system"]) {
      row(`page \`${target}\``, await times(get(target)));
    }
    const search = page.locator("#search");
    const typed = await times(async () => {
      await search.fill("rule-0000");
      await page.locator("#found").getByRole("link", { name: "rule-00001" }).waitFor();
    }, async () => {
      await search.fill("");
      await page.locator("#found").waitFor({ state: "hidden" });
    });
    row("in the browser, from the last letter to the list, 150 ms of quiet included", typed);
    console.log(`\nThe longest search took ${longest.toFixed(0)} ms; at most ${SEARCH_MS_MAX} ms are wanted, and ${LOAD_MS_MAX} ms for the overview.`);
    if (longest > SEARCH_MS_MAX) process.exitCode = 1;
  } finally {
    await browser.close();
    running.server.kill("SIGKILL");
  }
}

main().catch((error) => { console.log(`failed: ${error.stack}`); process.exitCode = 1; });
