// What moves on a page: live numbers, search and checks while typing, the pointer on charts, keys. Every page works
// without it; markup comes from the server, which escapes it.

const main = document.getElementById("main");

// On a phone the places are a row that may be wider than the window: the present one is seen.
const present = document.querySelector("nav [aria-current]");
if (present) present.parentElement.scrollLeft = present.offsetLeft - (present.parentElement.clientWidth - present.offsetWidth) / 2;

// Fragments ------------------------------------------------------------------------------------------------------------

/** Calls `run` once the caller has been quiet for a moment; only the last answer counts. */
function debounced(run) {
  let timer = 0, turn = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const own = ++turn;
      await run(() => own === turn, ...values);
    }, 150);
  };
}

async function fragment(url, options) {
  const response = await fetch(url, { ...options, redirect: "error" });
  if (!response.ok) throw new Error(String(response.status));
  return response.text();
}

/** Replaces the content of an element, unless a form in it is in use. */
function place(element, markup) {
  if (!element || element.innerHTML === markup) return;
  const active = document.activeElement;
  if (element.querySelector("details.confirm[open]") || (active && active !== element && element.contains(active) && active.matches("input, select, textarea"))) return;
  element.innerHTML = markup;
}

// Lists that follow what is typed: the URL follows too, so that it can be shared.
for (const form of document.querySelectorAll("form[data-list]")) {
  const list = document.getElementById(form.dataset.list);
  const update = debounced(async (isLast) => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    const url = query.size ? `${form.action}?${query}` : form.action;
    query.set("part", "list");
    try {
      const markup = await fragment(`${form.action}?${query}`);
      if (!isLast()) return;
      place(list, markup);
      history.replaceState(null, "", url);
    } catch { /* the button still works */ }
  });
  form.addEventListener("input", update);
}
for (const select of document.querySelectorAll("select[data-submit]")) {
  if (!select.form.dataset.list) select.addEventListener("change", () => select.form.requestSubmit());
}

// The search of every page.
const search = document.getElementById("search");
const found = document.getElementById("found");
if (search) {
  const update = debounced(async (isLast) => {
    const wanted = search.value.trim();
    if (!wanted) { found.hidden = true; return; }
    try {
      const markup = await fragment(`/console/search?part=list&q=${encodeURIComponent(wanted)}`);
      if (!isLast()) return;
      found.innerHTML = markup;
      found.hidden = false;
    } catch { found.hidden = true; }
  });
  search.addEventListener("input", update);
  search.form.addEventListener("keydown", (event) => {
    const links = [search, ...found.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && !found.hidden) {
      event.preventDefault();
      links[(at + step + links.length) % links.length].focus();
    }
  });
  document.addEventListener("click", (event) => { if (!search.form.contains(event.target)) found.hidden = true; });
}

// The editor: mistakes while typing; a click on one goes to its line.
const editor = document.querySelector("form[data-check]");
if (editor) {
  const checked = document.getElementById("checked");
  const text = editor.elements.source;
  const update = debounced(async (isLast) => {
    const body = new URLSearchParams(new FormData(editor));
    body.set("part", "list");
    try {
      const markup = await fragment(editor.dataset.check, { method: "POST", body });
      if (isLast()) checked.innerHTML = markup;
    } catch { /* the button still works */ }
  });
  text.addEventListener("input", update);
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Tab" || event.shiftKey) return;
    event.preventDefault();
    text.setRangeText("  ", text.selectionStart, text.selectionEnd, "end");
  });
  checked.addEventListener("click", (event) => {
    const position = event.target.closest("[data-line]");
    if (!position) return;
    const before = text.value.split("\n").slice(0, position.dataset.line - 1).join("\n");
    const at = before.length + (position.dataset.line > 1 ? 1 : 0) + Number(position.dataset.column) - 1;
    text.focus();
    text.setSelectionRange(at, at);
  });
}

// A slider and its number are one value.
for (const range of document.querySelectorAll("input[type=range][data-for]")) {
  const number = document.getElementById(range.dataset.for);
  range.addEventListener("input", () => { number.value = range.value; number.dispatchEvent(new Event("input", { bubbles: true })); });
  number.addEventListener("input", () => { range.value = number.value; });
}

// Live numbers -----------------------------------------------------------------------------------------------------------

let stream = null;
function listen() {
  if (!main?.dataset.live || stream || document.hidden) return;
  stream = new EventSource(main.dataset.live);
  stream.onmessage = (event) => {
    for (const [id, markup] of Object.entries(JSON.parse(event.data))) place(document.getElementById(id), markup);
    main.dataset.heard = String(Number(main.dataset.heard ?? 0) + 1);
    point();
  };
  stream.addEventListener("over", () => location.reload());
  // The browser connects again by itself, unless the server refused the stream.
  stream.onerror = () => { if (stream?.readyState === EventSource.CLOSED) { stream = null; setTimeout(listen, 3000); } };
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return listen();
  stream?.close();
  stream = null;
});
addEventListener("pagehide", () => { stream?.close(); stream = null; });
addEventListener("pageshow", listen);
listen();

// Charts -----------------------------------------------------------------------------------------------------------------

let pointer = null;
function point() {
  document.querySelectorAll(".tip").forEach((tip) => tip.remove());
  if (!pointer) return;
  const plot = document.elementFromPoint(pointer.x, pointer.y)?.closest(".plot");
  const chart = plot?.closest(".chart");
  if (!chart) return;
  const box = plot.getBoundingClientRect();
  const series = chart.dataset.values.split(";").map((one) => {
    const [name, values] = one.split("=");
    return { name, values: values ? values.split(",").map(Number) : [] };
  });
  const bars = Math.max(...series.map(({ values }) => values.length));
  if (bars < 1) return;
  const bar = Math.min(bars - 1, Math.max(0, Math.floor((pointer.x - box.left) / box.width * bars)));
  const at = new Date(Number(chart.dataset.start) + bar * Number(chart.dataset.step));
  const tip = document.createElement("output");
  tip.className = "tip";
  tip.textContent = [at.toISOString().slice(11, 19) + " UTC", ...series.map(({ name, values }) => `${name} ${(values[bar] ?? 0).toLocaleString("en")}`)].join("\n");
  chart.append(tip);
  const left = pointer.x - chart.getBoundingClientRect().left;
  tip.style.left = `${Math.min(Math.max(0, left + 12), chart.clientWidth - tip.offsetWidth - 8)}px`;
}
document.addEventListener("pointermove", (event) => { pointer = { x: event.clientX, y: event.clientY }; point(); });
document.addEventListener("pointerleave", () => { pointer = null; point(); });

// Keys -------------------------------------------------------------------------------------------------------------------

const places = { o: "/", r: "/console/rules", c: "/console/clients", e: "/console/explain", w: "/console/what-if", h: "/console/audit" };
const help = document.getElementById("help");
let isGoing = false;
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (found) found.hidden = true;
    document.querySelectorAll("details.confirm[open], details.menu[open]").forEach((open) => { open.open = false; });
    if (document.activeElement === search) search.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  if (isGoing && places[event.key]) location.href = places[event.key];
  isGoing = event.key === "g";
  if (event.key === "/" && search) { event.preventDefault(); search.focus(); search.select(); }
  if (event.key === "?" && help) help.showModal();
});

// One confirmation is open at a time, and its first field has the focus.
document.addEventListener("toggle", (event) => {
  const opened = event.target;
  if (!opened.open || !opened.matches?.("details.confirm")) return;
  document.querySelectorAll("details.confirm[open]").forEach((other) => { if (other !== opened) other.open = false; });
  opened.querySelector("form input:not([type=hidden]), form select, form button")?.focus();
}, true);

// Secrets that are shown once can be copied.
for (const block of document.querySelectorAll(".note pre, .guide pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = "Copied";
  });
  block.after(button);
}
