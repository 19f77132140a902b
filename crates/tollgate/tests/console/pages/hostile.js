// Names that are markup, in every field that a page shows: they stay text. Forms of others, and made-up sessions.
"use strict";

const http = require("node:http");
const { ADMIN, TOKEN, signIn, api, check, has, equal } = require("../browser");

const NASTY = [
  `<img src=x onerror=alert(1)>`,
  `</script><script>alert(1)</script>`,
  `"><svg onload=alert(1)>`,
  `' onmouseover='alert(1)`,
  `javascript:alert(1)`,
  `\u001b]0;pwn\u0007\u202e{{7*7}}`,
];

/** The status of a request with a field `Host` of its own, which fetch does not send. */
function statusUnder(host, path) {
  return new Promise((resolve, reject) => {
    http.get(ADMIN + path, { headers: { host } }, (response) => { response.resume(); resolve(response.statusCode); }).on("error", reject);
  });
}

exports.run = async (page, window) => {
  await signIn(page);
  const end = new Date(Date.now() + 3_600_000).toISOString();
  for (const [at, text] of NASTY.entries()) {
    const client = `user:${text}`;
    await api("POST", "/v1/clients", { client_key: client, tier: text, organisation: text, attributes: { note: text } });
    await api("POST", "/v1/overrides", { override_id: `xss-${at}`, client_key: client, rule_id: "logins", max_requests: 1, valid_until: end, reason: text });
    await api("POST", "/v1/rules", { rule_id: `xss-${at}`, name: text, description: text, match: { endpoint: "/xss", tier: text }, key_by: "ip", limit: { requests: 1, window: "1m" } });
    await api("POST", "/v1/tokens", { name: text, role: "viewer", expires_in: "1h" });
    for (let turn = 0; turn < 3; turn += 1) await check({ client_key: client, endpoint: `POST /login` });
  }
  const pages = ["/", "/console/rules", "/console/clients", "/console/audit", "/console/access", "/console/system", "/console/rule?id=logins"];
  for (const text of NASTY) {
    const value = encodeURIComponent(text);
    pages.push(`/console/client?key=${encodeURIComponent(`user:${text}`)}`, `/console/explain?request=${value}&namespace=${value}`, `/console/search?q=${value}`);
    pages.push(`/console/rules?search=${value}&source=${value}&namespace=${value}`, `/console/rule?id=${value}`, `/console/audit?id=${value}&author=${value}`);
    pages.push(`/console/what-if?rule=${value}`, `/console/decision?id=${value}`, `/console/rule/edit?namespace=${value}`, `/?done=${value}&window=${value}`);
  }
  for (const path of pages) {
    await page.goto(path);
    const made = await page.evaluate(() => document.querySelectorAll("main img, main script, [onerror], [onload], [onmouseover], a[href^='javascript']").length);
    equal(made, 0, `elements that were made at ${path}`);
  }

  // Forms of other pages change nothing.
  const cookie = (await window.context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
  const post = (fields, body = "mode=off") => fetch(`${ADMIN}/console/mode`, {
    method: "POST", redirect: "manual", body,
    headers: { "content-type": "application/x-www-form-urlencoded", cookie, ...fields },
  });
  for (const fields of [{}, { origin: "https://evil.example" }, { "sec-fetch-site": "cross-site" }, { origin: "null" }]) {
    equal((await post(fields)).status, 403, `a form from ${JSON.stringify(fields)}`);
  }
  equal((await post({ origin: ADMIN }, "mode=off&form_token=x")).status, 403, "a made-up form token");
  equal((await post({ "content-type": "text/plain" })).status, 403, "a form of plain text");
  equal((await api("GET", "/v1/mode")).json.mode, "enforce", "the mode");
  equal((await fetch(`${ADMIN}/v1/rules`, { headers: { cookie } })).status, 401, "the API with a cookie alone");
  equal((await fetch(`${ADMIN}/console/live?page=overview`, { headers: { cookie, origin: "https://evil.example" } })).status, 403, "a stream of another site");

  // Sessions: flags, made-up ones, the way back after signing in.
  const [session] = await window.context.cookies();
  equal([session.httpOnly, session.sameSite, session.path].join(), "true,Strict,/", "the cookie");
  if (session.value.includes(TOKEN.split("_")[2])) throw new Error("the cookie shows the token");
  for (const value of ["x", session.value.slice(0, -2), "A".repeat(4000)]) {
    const response = await fetch(`${ADMIN}/console/rules`, { redirect: "manual", headers: { cookie: `${session.name}=${value}` } });
    equal(response.status, 303, "a made-up session");
  }
  for (const next of ["//evil.example", "https://evil.example", "/\\evil.example", "/console/../v1/rules"]) {
    const body = new URLSearchParams({ token: TOKEN, next });
    const response = await fetch(`${ADMIN}/console/sign-in`, { method: "POST", redirect: "manual", body });
    const location = new URL(response.headers.get("location"), ADMIN);
    equal(location.origin, ADMIN, `after signing in, from ${next}`);
  }
  for (const path of ["/", "/console/sign-in", "/console/style.css", "/console/live?page=overview"]) {
    equal(await statusUnder("evil.example", path), 421, `${path} under another host name`);
  }

  // Every response forbids what it does not need.
  for (const path of ["/", "/console/sign-in", "/console/style.css", "/console/nothing", "/docs"]) {
    const response = await fetch(ADMIN + path, { headers: { cookie }, redirect: "manual" });
    const policy = response.headers.get("content-security-policy");
    for (const part of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"]) has(policy, part, path);
    if (/unsafe|https?:|\*|nonce/.test(policy)) throw new Error(`${path} allows too much: ${policy}`);
    equal(response.headers.get("x-content-type-options"), "nosniff", path);
    equal(response.headers.get("x-frame-options"), "DENY", path);
    if (!path.endsWith(".css")) equal(response.headers.get("cache-control"), "no-store", path);
  }
  for (const [at] of NASTY.entries()) await api("DELETE", `/v1/rules/xss-${at}`);
};
