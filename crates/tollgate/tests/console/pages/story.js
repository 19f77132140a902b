// Three in the morning: who is limited, by which rule, why, since when, and what if the limit is doubled?
"use strict";

const { signIn, check, until, has, equal } = require("../browser");

const LOGIN = { client_key: "user:night", endpoint: "POST /login" };

exports.run = async (page) => {
  await signIn(page);
  await page.getByText("No client is refused.").or(page.getByRole("heading", { name: "Newly refused" })).first().waitFor();
  for (let turn = 0; turn < 60; turn += 1) await check(LOGIN);

  // Who, by which rule, since when: without a reload.
  const table = page.getByRole("region", { name: "Limited clients" });
  const row = table.getByRole("row").filter({ hasText: "user:night" });
  await row.waitFor();
  has(await row.innerText(), "logins", "the rule");
  has(await row.locator("time").first().getAttribute("title"), "UTC", "since when");

  // Why: everything that the client meets.
  await row.getByRole("link", { name: "user:night" }).click();
  await page.getByRole("heading", { name: "user:night" }).waitFor();
  const state = page.getByRole("region", { name: "Rules" }).getByRole("row").filter({ hasText: "logins" });
  has(await state.innerText(), "denied", "the state");
  has(await state.innerText(), "again in", "when it passes");
  const decisions = page.getByRole("region", { name: "Decisions" });
  await decisions.getByRole("row").nth(1).getByRole("link").first().click();
  await page.getByRole("heading", { name: "Why" }).waitFor();
  has(await page.locator("main").innerText(), "is refused by the rule since", "since when, of the decision");

  // What if it is doubled?
  await page.getByRole("link", { name: "logins" }).first().click();
  await page.getByRole("link", { name: "What if" }).last().click();
  await page.getByRole("link", { name: "double" }).click();
  await page.locator("#effect").getByText("would have refused").waitFor();
  equal(await page.locator("#requests").inputValue(), "10", "the doubled limit");
  has(await page.locator("#effect").innerText(), "user:night", "the effect by client");
  const before = await page.locator("#effect").innerText();
  await page.locator("#requests").fill("1000");
  await until("the effect of a high limit", async () => (await page.locator("#effect").innerText()) !== before);
  has(page.url(), "requests=1000", "the address follows");

  // More for this client, for an hour.
  await page.goto("/console/client?key=user:night");
  await page.getByText("Grant an override…").click();
  await page.locator("details[open] select[name=rule_id]").selectOption("logins");
  await page.locator("details[open]").getByLabel("Requests").fill("100");
  await page.locator("details[open]").getByLabel("Reason").fill("night shift");
  await page.getByRole("button", { name: "Grant it" }).click();
  await page.getByText("The override is in force.").waitFor();
  has(await page.getByRole("region", { name: "Overrides" }).innerText(), "night shift", "the reason");
  await until("the client is let in", async () => (await check(LOGIN)).allowed);
};
