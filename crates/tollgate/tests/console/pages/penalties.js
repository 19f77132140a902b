// A client that is refused altogether: seen on the overview and on its page, and let in again.
"use strict";

const { signIn, api, check, until, has, equal } = require("../browser");

const REQUEST = { client_key: "user:pushy", endpoint: "POST /guarded" };
const HOUR_MS = 3_600_000;

exports.run = async (page) => {
  const made = await api("POST", "/v1/rules", {
    rule_id: "guarded", match: { endpoint: "POST /guarded" }, key_by: "client_key",
    limit: { requests: 2, window: "1h", algorithm: "fixed_window" }, penalty: { after: 5, within: "1h", block: "2d" },
  });
  equal(made.status, 201, "the rule");
  await until("a penalty holds", async () => (await check(REQUEST)).retry_after_ms > HOUR_MS);
  const listed = async () => (await api("GET", "/v1/penalties?client_key=user:pushy")).json.penalties.length;
  await until("it is listed", async () => (await listed()) === 1);

  await signIn(page);
  const table = page.getByRole("region", { name: "Penalties" });
  const row = table.getByRole("row").filter({ hasText: "user:pushy" });
  has(await row.innerText(), "guarded", "the rule of the penalty");
  await row.getByRole("link", { name: "user:pushy" }).click();
  await page.getByRole("heading", { name: "user:pushy" }).waitFor();
  const note = page.locator(".note.bad").filter({ hasText: "Refused altogether" });
  has(await note.innerText(), "guarded", "the rule on the client's page");
  has(await note.locator("time").last().getAttribute("title"), "UTC", "until when");

  await note.getByText("Lift the penalty…").click();
  await note.getByRole("button", { name: "Lift it" }).click();
  await page.getByText("The penalty is lifted.").waitFor();
  equal(await note.count(), 0, "the note of a lifted penalty");
  await until("the window alone refuses it", async () => (await check(REQUEST)).retry_after_ms <= HOUR_MS);
  equal(await listed(), 0, "penalties of the client");
  await page.goto("/console/audit?kind=penalty");
  has(await page.locator(".timeline").first().innerText(), "penalty", "the audit");
  await api("DELETE", "/v1/rules/guarded");
};
