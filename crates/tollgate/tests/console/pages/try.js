// The data API is tried from its page: a real decision, a mistake in words, and not by a token that only reads.
"use strict";

const { signIn, api, open, check, until, has, equal } = require("../browser");

exports.run = async (page, window, browser) => {
  const limit = { requests: 5, window: "30d" }; // a bucket that does not fill up while the page is looked at
  await api("POST", "/v1/rules", { rule_id: "tried", match: { endpoint: "GET /tried" }, key_by: "client_key", limit });
  const left = async () => {
    const decision = await check({ client_key: "user:tried", endpoint: "GET /tried", cost: 0 });
    return decision.rule === "tried" ? decision.remaining : null;
  };
  await until("the rule is in force", async () => (await left()) === 5);
  await signIn(page);
  await page.goto("/docs");
  await page.getByRole("link", { name: "data API" }).click();
  const operation = page.locator("#check");
  await operation.getByText("Try it…").click();
  const body = operation.getByLabel("Body");
  await body.fill(JSON.stringify({ client_key: "user:tried", endpoint: "GET /tried" }));
  await operation.getByRole("button", { name: "Send to /v1/check" }).click();
  has(await operation.locator(".answer").innerText(), "200 OK", "the status");
  has(await operation.locator(".answer").innerText(), '"allowed": true', "the decision");
  has(await operation.locator(".answer").innerText(), '"remaining": 4', "what is left");
  equal(await left(), 4, "it was a real request");

  await operation.getByLabel("Body").fill("{ nonsense");
  await operation.getByRole("button", { name: "Send to /v1/check" }).click();
  has(await operation.locator(".answer .badge.bad").innerText(), "400", "the status of nonsense");
  equal(await operation.getByLabel("Body").inputValue(), "{ nonsense", "what was typed stays");

  const usage = page.locator("#usage");
  await usage.getByText("Try it…").click();
  await usage.getByLabel("client_key").fill("user:tried");
  await usage.getByRole("button", { name: "Send to /v1/usage" }).click();
  has(await usage.locator(".answer").innerText(), "200 OK", "a question in the query");

  // A check takes units: a viewer has no form for it, and an operator of one namespace would get past it.
  for (const [role, namespaces] of [["viewer", null], ["operator", ["shop"]]]) {
    const { json } = await api("POST", "/v1/tokens", { name: `tries as ${role}`, role, namespaces });
    const other = await open(browser);
    await signIn(other.page, "/console/data-api", json.token);
    equal(await other.page.getByText("Try it…").count(), 0, `forms for ${role}`);
    const status = await other.page.evaluate(async () => {
      const form_token = await (await fetch("/console/form-token")).text();
      const form = new URLSearchParams({ form_token, operation: "check", body: '{"client_key":"user:tried"}' });
      return (await fetch("/console/data-api/try", { method: "POST", body: form })).status;
    });
    equal(status, 403, `a form of ${role}`);
    await other.context.close();
    await api("DELETE", `/v1/tokens/${json.token_id}`);
  }
  equal(await left(), 4, "nothing more was taken");
  await api("DELETE", "/v1/rules/tried");
};
