// A rule of an Envoy file: found, marked, overridden for one client and switched, all without touching the file.
"use strict";

const { signIn, api, check, until, has, equal } = require("../browser");

const REQUEST = { namespace: "edge", attributes: { tenant: "acme" }, cost: 0 };

exports.run = async (page) => {
  await signIn(page, "/console/rules?source=envoy");
  const row = page.locator("#rules").getByRole("row").filter({ hasText: "edge.yaml" }).first();
  has(await row.innerText(), "envoy", "the source of the rule");
  await row.getByRole("link").first().click();
  await page.getByRole("heading", { name: "tenant" }).waitFor();
  has(await page.locator(".about").innerText(), "edge.yaml", "where it stands");
  equal(await page.getByText("Edit", { exact: true }).count(), 0, "a rule of a file has no editor");
  equal((await check(REQUEST)).limit, 7, "the limit of the file");

  await page.getByText("Grant an override…").click();
  const form = page.locator("details[open] form");
  await form.getByLabel("Client").fill("tenant:acme");
  await form.getByLabel("Requests").fill("70");
  await form.getByLabel("Reason").fill("launch of acme");
  await form.getByRole("button", { name: "Grant it" }).click();
  await page.getByText("The override is in force.").waitFor();
  await until("the override holds", async () => (await check(REQUEST)).limit === 70);
  equal((await check({ ...REQUEST, attributes: { tenant: "other" } })).limit, 7, "the limit of another tenant");
  const held = page.getByRole("region", { name: "Overrides" });
  has(await held.innerText(), "launch of acme", "the reason");

  // Its mode is switched like that of any rule.
  await page.getByText("Shadow…").click();
  await page.getByRole("button", { name: "Switch to shadow" }).click();
  await page.getByText("The mode of the rule is switched.").waitFor();
  has(await page.locator(".about").innerText(), "shadow", "the mode in force");
  await page.getByText("Own mode…").click();
  await page.getByRole("button", { name: "Switch back" }).click();
  await page.getByText("The mode of the rule is switched.").waitFor();

  await held.getByText("End…").click();
  await held.getByRole("button", { name: "End the override" }).click();
  await page.getByText("The override has ended.").waitFor();
  await until("the limit of the file holds again", async () => (await check(REQUEST)).limit === 7);
  equal((await api("GET", "/v1/rules/tenant?namespace=edge")).json.source, "envoy", "the source, unchanged");
};
