// Rules: finding, making with mistakes shown, reviewing, enforcing, deleting; the history and the way back.
"use strict";

const { signIn, api, check, until, has, equal } = require("../browser");

const TEXT = `rules:
  - name: uploads
    match: { endpoint: "POST /upload" }
    key_by: user_id
    limit: { requests: 3, window: 1m }
    mode: shadow
`;

exports.run = async (page) => {
  await signIn(page, "/console/rules?source=file");
  equal(new URL(page.url()).search, "?source=file", "the way back");
  has(await page.locator("#rules").innerText(), "logins", "a rule of the file");
  await page.getByLabel("Find rules").fill("sear");
  await until("the list follows what is typed", async () => !(await page.locator("#rules").innerText()).includes("logins"));
  has(await page.locator("#rules").innerText(), "searches", "what was searched");
  has(page.url(), "search=sear", "the address follows");

  // Mistakes have a line and a column while the text is typed.
  await page.goto("/console/rules");
  await page.getByRole("link", { name: "New rule" }).click();
  await page.getByLabel("Rule", { exact: true }).fill(TEXT.replace("1m", "60"));
  await page.getByText("line 5, column").waitFor();
  has(await page.locator("#checked").innerText(), "has no unit", "the mistake");
  await page.getByLabel("Rule", { exact: true }).fill(TEXT);
  await page.getByText("No mistakes.").waitFor();
  await page.getByRole("button", { name: "Review the change" }).click();
  await page.getByRole("heading", { name: "Review the change" }).waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The rule is saved").waitFor();
  equal((await api("GET", "/v1/rules/uploads")).json.mode, "shadow", "the mode that was saved");

  // From shadow to enforce, after it was seen what it would refuse.
  const upload = { client_key: "user:up", endpoint: "POST /upload" };
  await until("the rule counts", async () => (await check(upload)).rules?.some(({ rule, allowed }) => rule === "uploads" && !allowed));
  await page.reload();
  await page.getByText("Edit", { exact: true }).click();
  const source = page.getByLabel("Rule", { exact: true });
  await source.fill((await source.inputValue()).replace(/mode: shadow/, "mode: enforce"));
  await page.getByRole("button", { name: "Review the change" }).click();
  has(await page.locator(".diff").first().innerText(), "shadow", "the difference");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The rule is saved").waitFor();
  await until("the rule refuses", async () => (await check({ ...upload, client_key: "user:second" })).rule === "uploads" && !(await check({ ...upload, client_key: "user:second" })).allowed);

  // Several rules at once: the review tries each on the last hour, in a line of its own.
  await page.goto("/console/rule/edit");
  const second = TEXT.replace("rules:\n", "").replace("uploads", "downloads").replace("POST /upload", "GET /download");
  await page.getByLabel("Rule", { exact: true }).fill(TEXT.replace("requests: 3", "requests: 1") + second);
  await page.getByRole("button", { name: "Review the change" }).click();
  const effects = page.getByRole("region", { name: "Effect by rule" });
  const ofUploads = effects.getByRole("row").filter({ has: page.getByRole("link", { name: "uploads", exact: true }) });
  equal(await ofUploads.getByRole("cell").count(), 5, "what is known of a rule that has met requests");
  has(await effects.getByRole("row").filter({ hasText: "downloads" }).innerText(), "Nothing of this rule is recorded yet", "a new rule");
  equal((await api("GET", "/v1/rules/downloads")).status, 404, "nothing was written");

  // A change by somebody else is not overwritten.
  await page.goto("/console/rule/edit?id=uploads");
  await api("PATCH", "/v1/rules/uploads", { limit: { requests: 5 } });
  await page.getByRole("button", { name: "Review the change" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".note.bad").waitFor();
  equal((await api("GET", "/v1/rules/uploads")).json.limit.requests, 5, "what the other one wrote");

  // A rule of a file is switched without being changed.
  await page.goto("/console/rule?id=searches");
  await page.getByText("Shadow…").click();
  await page.locator("details[open]").getByLabel("Reason").fill("too strict");
  await page.getByRole("button", { name: "Switch to shadow" }).click();
  await page.getByText("The mode of the rule is switched.").waitFor();
  has(await page.locator(".about").innerText(), "shadow", "the mode in force");
  await page.getByText("Own mode…").click();
  await page.getByRole("button", { name: "Switch back" }).click();
  await page.getByText("The mode of the rule is switched.").waitFor();

  await page.goto("/console/rule?id=uploads");
  await page.getByText("Delete…").click();
  await page.getByRole("button", { name: "Delete the rule" }).click();
  await page.getByText("The rule is deleted.").waitFor();

  // The history knows all of it, and the way back.
  await page.goto("/console/audit?kind=rule&id=uploads&verify=yes");
  has(await page.locator("main").innerText(), "The chain of hashes is whole.", "the chain");
  const latest = page.locator(".timeline > li").first();
  await latest.locator("summary").first().click();
  await latest.getByText("Revert…").click();
  await latest.getByRole("button", { name: "Revert this change" }).click();
  await page.getByText("The change is reverted.").waitFor();
  equal((await api("GET", "/v1/rules/uploads")).status, 200, "the rule is there again");
  await api("DELETE", "/v1/rules/uploads");
};
