// Every page in both themes and at phone width: nothing serious by axe, nothing wider than the window, a small first load.
"use strict";

const { source } = require("axe-core");
const { signIn } = require("../browser");

const PAGES = [
  "/", "/console/rules", "/console/rule?id=logins", "/console/rule/edit", "/console/clients", "/console/client?key=user:night",
  "/console/explain?request=client_key%3Duser%3Anight%20POST%20%2Flogin", "/console/what-if?rule=logins", "/console/audit", "/console/access",
  "/console/system", "/console/nodes", "/console/search?q=log", "/console/help", "/console/data-api", "/docs",
];

/** axe, without inserting a script element, which the policy forbids. */
async function judge(page, path) {
  const found = await page.evaluate(async (source) => {
    if (!globalThis.axe) (0, globalThis.eval)(source);
    const { violations } = await globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] });
    return violations.filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(" | ")}`);
  }, source);
  if (found.length > 0) throw new Error(`${path}: ${found.join("\n")}`);
}

exports.options = { bypassCSP: true };

exports.run = async (page) => {
  // The sign-in and the overview, with all that they load: as they are sent, which is more than they take compressed. The
  // stream of live numbers has no end.
  const bodies = [];
  const collect = (response) => {
    if (!(response.headers()["content-type"] ?? "").startsWith("text/event-stream")) bodies.push(response.body().catch(() => ""));
  };
  page.on("response", collect);
  await signIn(page);
  await page.waitForLoadState("load");
  page.off("response", collect);
  const bytes = (await Promise.all(bodies)).reduce((sum, body) => sum + body.length, 0);
  if (bytes < 20_000 || bytes > 100_000) throw new Error(`the first load takes ${bytes} bytes`);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const path of PAGES) {
      await page.goto(path);
      await judge(page, `${path} in ${colorScheme}`);
    }
  }
  await page.setViewportSize({ width: 380, height: 800 });
  for (const path of PAGES) {
    await page.goto(path);
    const excess = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (excess > 0) throw new Error(`${path} is ${excess} px wider than a phone`);
  }
};
