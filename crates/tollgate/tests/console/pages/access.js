// Tokens: made, shown once, used, revoked; roles and namespaces hold; the switch for people on call.
"use strict";

const { signIn, api, open, equal, has, until } = require("../browser");

async function make(page, name, role, namespaces = "") {
  await page.goto("/console/access");
  await page.getByText("New token…").click();
  await page.getByLabel("Name").first().fill(name);
  await page.getByLabel("Role").selectOption(role);
  await page.getByLabel("Namespaces").fill(namespaces);
  await page.getByRole("button", { name: "Make the token" }).click();
  return (await page.locator(".note pre code").innerText()).trim();
}

exports.run = async (page, window, browser) => {
  await signIn(page);
  const onCall = await make(page, "night shift", "on-call");
  has(onCall, "tg_", "the token");
  await page.reload();
  equal(await page.locator(".note pre").count(), 0, "a token is shown once");

  // On call: shadow and back, and nothing else.
  const second = await open(browser);
  await signIn(second.page, "/", onCall);
  equal(await second.page.getByText("Off…").count(), 0, "off is for admins");
  await second.page.getByText("Shadow…").click();
  await second.page.getByRole("button", { name: "Switch to shadow" }).click();
  await second.page.getByText("The mode is set.").waitFor();
  equal((await api("GET", "/v1/mode")).json.mode, "shadow", "the mode");
  await second.page.getByText("Enforce…").click();
  await second.page.getByRole("button", { name: "Switch to enforce" }).click();
  await second.page.getByText("The mode is set.").waitFor();
  equal((await api("GET", "/v1/mode")).json.mode, "enforce", "the mode again");
  await second.page.goto("/console/rules");
  equal(await second.page.getByText("New rule").count(), 0, "no button for what is refused");

  // A token of one namespace sees nothing of another.
  const limited = await make(page, "shop only", "operator", "shop");
  await api("POST", "/v1/rules?namespace=shop", { rule_id: "shop-rule", match: { endpoint: "/x" }, key_by: "ip", limit: { requests: 1, window: "1m" } });
  const third = await open(browser);
  await signIn(third.page, "/console/rules", limited);
  await until("its own rule", async () => { await third.page.reload(); return (await third.page.locator("#rules").innerText()).includes("shop-rule"); });
  for (const path of ["/console/rules?namespace=default", "/console/search?q=logins", "/console/audit?namespace=default", "/?namespace=default"]) {
    await third.page.goto(path);
    const text = await third.page.locator("main").innerText();
    if (/logins|per-client|orders/.test(text.replace(/q=logins|client logins/g, ""))) throw new Error(`${path} shows another namespace: ${text}`);
  }
  equal((await third.page.goto("/console/rule?namespace=default&id=logins")).status(), 404, "another namespace's rule");
  equal(third.problems.join(), "", "problems of a limited token");

  // Revoked: the next page asks to sign in.
  const id = onCall.split("_")[1];
  await page.goto("/console/access");
  const row = page.getByRole("row").filter({ hasText: id });
  await row.getByText("Revoke…").click();
  await row.getByRole("button", { name: "Revoke the token" }).click();
  await page.getByText("The token is revoked").waitFor();
  await second.page.goto("/console/rules");
  await second.page.getByRole("heading", { name: "Sign in" }).waitFor();
  await second.context.close();
  await third.context.close();
  await api("DELETE", "/v1/rules/shop-rule?namespace=shop");

  await page.locator(".menu summary").click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  equal((await window.context.cookies()).length, 0, "cookies after signing out");
};
