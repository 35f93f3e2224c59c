"use strict";
(() => {
  const list = document.getElementById("events");
  if (!list) return;
  const $ = (id) => document.getElementById(id), chunks = JSON.parse(list.dataset.chunks), total = +list.dataset.total;
  const kinds = new Set();
  let next = 0, words = "";
  const events = () => list.querySelectorAll(".event");
  const load = () => new Promise((done) => {  // a file beside this page; its text was escaped when the report was written
    if (next >= chunks.length) { done(false); return; }
    window.expbenchEvents = (html) => { list.insertAdjacentHTML("beforeend", html); };
    const script = document.createElement("script");
    script.src = chunks[next]; next += 1;
    script.onload = () => { script.remove(); done(true); };
    script.onerror = () => { script.remove(); next = chunks.length; $("shown").textContent = "A part of the trajectory is missing beside this page: write the report again."; done(false); };
    document.body.append(script);
  });
  const all = async () => { while (await load()); };
  const filter = () => {
    let shown = 0, count = 0;
    for (const event of events()) {
      const fits = (!kinds.size || kinds.has(event.dataset.kind)) && (!words || event.textContent.toLowerCase().includes(words));
      event.hidden = !fits; count += 1; shown += fits ? 1 : 0;
    }
    $("shown").textContent = shown === total ? `${total.toLocaleString()} events` : `${shown.toLocaleString()} shown, ${count.toLocaleString()} of ${total.toLocaleString()} events loaded`;
    $("more").hidden = next >= chunks.length;
  };
  const open = (yes) => { for (const event of events()) if (!event.hidden) event.open = yes; };
  let timer = 0;
  $("search").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(async () => { words = $("search").value.trim().toLowerCase(); if (words) await all(); filter(); }, 150); });
  for (const button of document.querySelectorAll("button[data-kind]")) button.addEventListener("click", async () => {
    const pressed = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", pressed); kinds[pressed ? "add" : "delete"](button.dataset.kind);
    if (kinds.size) await all();
    filter();
  });
  $("unfold").addEventListener("click", () => open(true)); $("fold").addEventListener("click", () => open(false));
  $("more").addEventListener("click", async () => { await load(); filter(); });
  const go = async () => {
    const name = location.hash.slice(1);
    if (!/^e\d+$/.test(name)) return;
    while (!$(name) && await load());
    filter();
    const event = $(name);
    if (event) { event.hidden = false; event.open = true; event.scrollIntoView(); }
  };
  window.addEventListener("hashchange", go);
  filter(); go();
})();
