// Explain: words, JSON or a curl line; every rule with why or why not; a URL to share.
"use strict";

const { signIn, has } = require("../browser");

exports.run = async (page) => {
  await signIn(page, "/console/explain");
  await page.getByLabel("Request").fill("curl -X POST 'https://shop.example/login?x=1' -H 'X-Client-Key: user:curl'");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByText("Allowed", { exact: true }).waitFor();
  const text = await page.locator("main").innerText();
  for (const part of ["logins", "client_key=user:curl", "do not apply"]) has(text, part, "the explanation");
  await page.locator(".others summary").click();
  has(await page.locator(".others").innerText(), "endpoint should be GET /search, is POST /login", "why not");
  const shared = page.url();
  await page.goto("/");
  await page.goto(shared);
  has(await page.locator("main").innerText(), "client_key=user:curl", "the shared page");
  await page.getByLabel("Request").fill("{ nonsense");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByText("This is not JSON").waitFor();
};
