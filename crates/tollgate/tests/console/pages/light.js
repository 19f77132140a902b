// A client that asked once: no chart of it is kept, which the page says, and what is known of it is shown.
"use strict";

const { signIn, api, check, until, has, equal } = require("../browser");

exports.run = async (page) => {
  const limit = { requests: 5, window: "30d" }; // a bucket that does not fill up while the page is looked at
  const made = await api("POST", "/v1/rules", { rule_id: "light", match: { endpoint: "GET /light" }, key_by: "client_key", limit });
  equal(made.status, 201, "the rule");
  await until("the rule counts", async () => (await check({ client_key: "user:light", endpoint: "GET /light" })).rule === "light");
  await signIn(page, "/console/client?key=user:light");
  const chart = page.locator(".chart");
  has(await chart.innerText(), "No counts over time are kept of this client", "instead of a chart");
  equal(await chart.locator("svg").count(), 0, "an empty drawing");
  const row = page.getByRole("region", { name: "Rules" }).getByRole("row").filter({ hasText: "5 per 30d" });
  for (const part of ["light", "ok", "4", "1 used"]) has(await row.innerText(), part, "what a rule has left");
  await api("DELETE", "/v1/rules/light");
};
