// Finds operations by what is typed, copies examples, and tries operations as who is signed in to the console. The page
// reads without it.
"use strict";

const find = document.getElementById("find");
const contents = document.getElementById("contents");
const operations = [...document.querySelectorAll("article.operation")].map((article) => ({
  article,
  entry: contents.querySelector(`a[href="#${CSS.escape(article.id)}"]`).parentElement,
  text: article.textContent.toLowerCase(),
}));
if (matchMedia("(max-width: 60rem)").matches) contents.open = false;

find.addEventListener("input", () => {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const { article, entry, text } of operations) {
    article.hidden = entry.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll("section")) {
    const own = section.querySelectorAll("article.operation");
    section.hidden = own.length > 0 && [...own].every((article) => article.hidden);
  }
});

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

for (const example of document.querySelectorAll("pre")) {
  const copy = element("button", { type: "button", textContent: "copy" });
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(example.querySelector("code").textContent);
    copy.textContent = "copied";
  });
  example.append(copy);
}

/** The proof that this page may act for the session; empty for a reader who is not signed in. */
async function formToken() {
  const response = await fetch("/console/form-token", { redirect: "manual" });
  return response.ok ? response.text() : "";
}

/** The fields of an operation: its parameters, and a body if the example has one. */
function fields(article) {
  const rows = [...article.querySelectorAll(".parameters tr")].slice(1).map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
  const example = article.querySelector("pre code").textContent;
  const body = example.match(/ -d '(.*)'$/s)?.[1];
  const media = example.match(/Content-Type: ([^']*)/)?.[1];
  return { parameters: rows.map(([name, place]) => ({ name: name.split(" ")[0], place })), body, media };
}

function tryIt(article) {
  const { method, path } = article.dataset;
  const { parameters, body, media } = fields(article);
  const form = element("form", { className: "try" });
  const inputs = parameters.filter(({ name }) => name !== "If-None-Match").map(({ name, place }) => {
    const input = element("input", { name, ariaLabel: name, value: name === "If-Match" ? "*" : "" });
    form.append(element("span", { textContent: name }), input);
    return { name, place, input };
  });
  const text = body && element("textarea", { value: body, ariaLabel: "Body", spellcheck: false });
  if (text) form.append(element("span", { textContent: "Body" }), text);
  const send = element("button", { textContent: method === "GET" ? "Send" : `Send ${method}: this changes the server` });
  const answer = element("pre", { tabIndex: 0, hidden: true });
  form.append(send, answer);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const token = await formToken();
    const headers = token ? { "X-Tollgate-Form": token } : {};
    const query = new URLSearchParams();
    let target = path;
    for (const { name, place, input } of inputs) {
      if (place === "path") target = target.replace(`{${name}}`, encodeURIComponent(input.value));
      else if (input.value && place === "query") query.set(name, input.value);
      else if (input.value) headers[name] = input.value;
    }
    if (text && media) headers["Content-Type"] = media;
    const response = await fetch(query.size ? `${target}?${query}` : target, { method, headers, body: text?.value });
    const told = await response.text();
    let shown = told;
    try { shown = JSON.stringify(JSON.parse(told), null, 2); } catch { /* it is no JSON */ }
    const hint = response.status === 401 ? "\n\nSign in to the console first: /" : "";
    answer.hidden = false;
    answer.textContent = `${response.status} ${response.statusText}\n\n${shown}${hint}`;
  });
  return form;
}

for (const { article } of operations) {
  // A stream has no end to wait for.
  if (article.dataset.path === "/v1/events") continue;
  const button = element("button", { type: "button", textContent: "Try it" });
  button.addEventListener("click", () => {
    const form = tryIt(article);
    button.replaceWith(form);
    form.querySelector("input, textarea, button").focus();
  });
  article.append(button);
}
