"use strict";
// A trajectory in parts: the first stands in the page, each further one is a file beside it that is loaded when it is
// wanted. Only the parts that were opened, and the events that are searched for, become elements of the page.
(() => {
  const list = document.getElementById("events");
  if (!list) return;
  const $ = (id) => document.getElementById(id), files = JSON.parse(list.dataset.chunks), total = +list.dataset.total;
  const MOST = 1000, AT_ONCE = 8, kinds = new Set();  // found events that are shown at once; files that are loaded at once
  const parts = [null, ...files].map((file) => ({ file, first: 0, count: 0, events: null, open: false, box: document.createElement("div") }));
  let words = "", turn = 0;
  const number = (value) => value.toLocaleString();
  const held = Array.from(list.children, (event) => event.outerHTML);
  list.replaceChildren(...parts.map((part) => part.box));
  const size = files.length ? held.length : total;
  parts.forEach((part, n) => { part.first = n * size; part.count = Math.min(size, total - part.first); });
  Object.assign(parts[0], { events: held, open: true });

  window.expbenchEvents = (n, events) => { parts[n].events = events; };  // its text was escaped when the report was written
  const load = (part) => part.events ? Promise.resolve(true) : new Promise((done) => {
    const script = document.createElement("script");
    script.src = part.file;
    script.onload = () => { script.remove(); done(part.events !== null); };
    script.onerror = () => { script.remove(); $("shown").textContent = "A part of the trajectory is missing beside this page: write the report again."; done(false); };
    document.body.append(script);
  });
  const gap = (from) => {  // the parts from here on that are not open, as a button that opens the first of them
    const last = parts.findIndex((part, n) => n >= from && part.open), end = last < 0 ? total : parts[last].first;
    const button = document.createElement("button"), part = parts[from];
    button.type = "button"; button.className = "gap noprint";
    button.textContent = `Load events #${number(part.first)} to #${number(part.first + part.count - 1)}` + (end > part.first + part.count ? ` (not loaded: up to #${number(end - 1)})` : "");
    button.addEventListener("click", () => open(from));
    return button;
  };
  const draw = () => {
    let loaded = 0;
    parts.forEach((part, n) => {
      if (!part.open) part.box.replaceChildren(...(n > 0 && parts[n - 1].open && parts.some((other, m) => m > n && other.open) ? [gap(n)] : []));
      else if (!part.box.dataset.whole) { part.box.innerHTML = part.events.join(""); part.box.dataset.whole = 1; }
      loaded += part.open ? part.count : 0;
    });
    $("shown").textContent = loaded === total ? `${number(total)} events` : `${number(loaded)} shown, ${number(loaded)} of ${number(total)} events loaded`;
    $("more").hidden = parts.at(-1).open;
  };
  const open = async (n) => { if (await load(parts[n])) { parts[n].open = true; if (!searching()) draw(); } };
  const searching = () => words || kinds.size;
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&#34;").replace(/'/g, "&#39;");
  const find = async () => {
    const mine = ++turn, wanted = escaped(words);
    const fits = (event) => (!kinds.size || kinds.has(event.match(/data-kind="(\w+)"/)[1])) && (!wanted || event.replace(/<[^>]*>/g, "").toLowerCase().includes(wanted));
    let found = 0, seen = 0;
    for (let n = 0; n < parts.length; n += AT_ONCE) {
      const some = parts.slice(n, n + AT_ONCE);
      if ((await Promise.all(some.map(load))).includes(false) || mine !== turn) return;
      for (const part of some) {
        const hits = part.events.filter(fits), room = Math.max(0, MOST - found);
        part.box.innerHTML = hits.slice(0, room).join(""); delete part.box.dataset.whole;
        found += hits.length; seen += part.count;
      }
      $("shown").textContent = `${number(Math.min(found, MOST))} shown, ${number(seen)} of ${number(total)} events loaded` + (found > MOST ? `; ${number(found)} found: narrow the search to see the others` : "");
    }
    $("more").hidden = true;
  };
  const show = () => { if (searching()) return find(); turn += 1; draw(); };
  const fold = (yes) => { for (const event of list.querySelectorAll(".event")) event.open = yes; };
  let timer = 0;
  $("search").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => { words = $("search").value.trim().toLowerCase(); show(); }, 150); });
  for (const button of document.querySelectorAll("button[data-kind]")) button.addEventListener("click", () => {
    const pressed = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", pressed); kinds[pressed ? "add" : "delete"](button.dataset.kind);
    show();
  });
  $("unfold").addEventListener("click", () => fold(true)); $("fold").addEventListener("click", () => fold(false));
  $("more").addEventListener("click", () => open(parts.findLastIndex((part) => part.open) + 1));
  const go = async () => {
    const name = location.hash.slice(1);
    if (!/^e\d+$/.test(name)) return;
    const n = Math.floor(+name.slice(1) / size);
    if (!parts[n] || !(await load(parts[n]))) return;
    parts[n].open = true;
    if (searching() && !$(name)) { words = $("search").value = ""; kinds.clear(); document.querySelectorAll("button[data-kind]").forEach((button) => button.setAttribute("aria-pressed", false)); }
    if (!searching()) { turn += 1; draw(); }
    const event = $(name);
    for (const other of list.querySelectorAll(".here")) other.classList.remove("here");
    if (event) { event.open = true; event.classList.add("here"); event.scrollIntoView(); }
  };
  window.addEventListener("hashchange", go);
  draw(); go();
})();
