// Finds operations by what is typed, and copies examples. The page reads without it.
"use strict";

const find = document.getElementById("find");
const operations = [...document.querySelectorAll("article.operation")].map((article) => ({
  article,
  text: article.textContent.toLowerCase(),
}));

find.addEventListener("input", () => {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const { article, text } of operations) {
    article.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll("section")) {
    const own = section.querySelectorAll("article.operation");
    section.hidden = own.length > 0 && [...own].every((article) => article.hidden);
  }
});

for (const example of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(example.querySelector("code").textContent);
    button.textContent = "copied";
  });
  example.append(button);
}
