// Without scripts: every main task by links and forms alone.
"use strict";

const { signIn, api, has, equal } = require("../browser");

exports.options = { javaScriptEnabled: false };

exports.run = async (page) => {
  await signIn(page, "/console/rules");
  await page.getByLabel("Find rules").fill("login");
  await page.getByRole("button", { name: "Find", exact: true }).click();
  has(await page.locator("#rules").innerText(), "logins", "the search");
  await page.goto("/console/search?q=logins");
  await page.getByRole("link", { name: "logins" }).first().click();
  await page.getByRole("heading", { name: "logins" }).waitFor();
  await page.goto("/console/rule/edit");
  await page.getByLabel("Rule", { exact: true }).fill("rules:\n  - name: plain\n    limit: { requests: 5 }\n");
  await page.getByRole("button", { name: "Check" }).click();
  await page.locator(".note.bad").waitFor();
  await page.getByLabel("Rule", { exact: true }).fill("rules:\n  - name: plain\n    match: { endpoint: /plain }\n    key_by: ip\n    limit: { requests: 5, window: 1m }\n");
  await page.getByRole("button", { name: "Review the change" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The rule is saved").waitFor();
  await page.getByText("Delete…").click();
  await page.getByRole("button", { name: "Delete the rule" }).click();
  await page.getByText("The rule is deleted.").waitFor();
  equal((await api("GET", "/v1/rules/plain")).status, 404, "the rule");
  await page.goto("/console/help");
  has(await page.locator("main").innerText(), "Find a rule or a client", "the help");
};
