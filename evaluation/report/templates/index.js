"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 100, $ = (id) => document.getElementById(id);
  const FIELDS = ["agent", "category", "status", "metric", "mark", "type"];

  // charts with several views: the select shows one of them
  for (const select of document.querySelectorAll("select[data-for]")) {
    const show = () => {
      for (const view of document.querySelectorAll(`[data-choice="${select.dataset.for}"]`)) view.hidden = view.dataset.value !== select.value;
    };
    select.addEventListener("change", show); show();
  }

  // a row: [config, task, repeat, category, status, marks (per mille or null), cost, seconds, types, folder, other family's score]
  const metrics = data.metrics, rows = data.rows;
  const names = rows.map((row) => (row[1] + " " + data.configs[row[0]].label).toLowerCase());
  let found = [], page = 0, sort = null;

  const state = () => Object.fromEntries([...FIELDS, "q"].map((name) => [name, $("f-" + name).value]));
  const matches = (row, index, f) => {
    if (f.q && !names[index].includes(f.q)) return false;
    if (f.agent !== "" && row[0] !== +f.agent) return false;
    if (f.category !== "" && row[3] !== +f.category) return false;
    if (f.status !== "" && row[4] !== +f.status) return false;
    if (f.type !== "" && !row[8].includes(+f.type)) return false;
    if (f.metric === "" || f.mark === "") return true;
    const mark = row[5][+f.metric];
    return f.mark === "unknown" ? mark === null : mark !== null && (f.mark === "full" ? mark === 1000 : mark < 1000);
  };
  const cell = (tr, text, kind) => { const td = tr.insertCell(); if (kind) td.className = kind; td.textContent = text; return td; };
  const percent = (mark) => (mark === null ? "–" : (mark / 10).toFixed(mark === 1000 || mark === 0 ? 0 : 1));

  const draw = () => {
    const body = $("rows"), pages = Math.max(1, Math.ceil(found.length / PAGE));
    page = Math.min(page, pages - 1);
    body.replaceChildren();
    for (const index of found.slice(page * PAGE, (page + 1) * PAGE)) {
      const row = rows[index], config = data.configs[row[0]], tr = body.insertRow();
      const link = document.createElement("a");
      const folder = row[9] || row[1];
      link.textContent = row[1] + (config.repeats > 1 ? ` · ${row[2]}` : "");
      if (data.pages) link.href = ["episodes", config.folder, folder, row[2] + ".html"].map(encodeURIComponent).join("/");
      cell(tr, "", "task").append(data.pages ? link : link.textContent);
      cell(tr, config.label); cell(tr, data.categories[row[3]] || "–");
      cell(tr, data.statuses[row[4]], data.statuses[row[4]]);
      for (const mark of row[5]) cell(tr, percent(mark), "n");
      if (data.families) cell(tr, row[10] || "", "n");
      cell(tr, row[6] === null ? "–" : "$" + row[6].toFixed(row[6] < 0.1 ? 4 : 2), "n");
      cell(tr, row[7] === null ? "–" : (row[7] / 60).toFixed(1), "n");
    }
    $("count").textContent = `${found.length.toLocaleString()} of ${rows.length.toLocaleString()} episodes`;
    $("where").textContent = `page ${page + 1} of ${pages}`;
    $("previous").disabled = page === 0; $("next").disabled = page >= pages - 1;
  };
  const apply = (remember) => {
    const f = state();
    if (remember) {
      const text = new URLSearchParams(Object.entries(f).filter(([, value]) => value !== "")).toString();
      history.replaceState(null, "", text ? "#episodes&" + text : "#episodes");
    }
    f.q = f.q.trim().toLowerCase();
    found = []; rows.forEach((row, index) => { if (matches(row, index, f)) found.push(index); });
    if (sort) {
      const value = (index) => { const row = rows[index]; return sort.column < metrics.length ? row[5][sort.column] : row[sort.column === metrics.length ? 6 : 7]; };
      found.sort((a, b) => { const x = value(a), y = value(b); return x === y ? a - b : x === null ? 1 : y === null ? -1 : sort.down * (x - y); });
    }
    page = 0; draw();
  };
  const restore = () => {
    if (!location.hash.startsWith("#episodes")) return false;
    const given = new URLSearchParams(location.hash.slice("#episodes".length).replace(/^&/, ""));
    for (const name of [...FIELDS, "q"]) $("f-" + name).value = given.get(name) ?? "";
    apply(false);
    return true;
  };

  for (const name of FIELDS) $("f-" + name).addEventListener("change", () => apply(true));
  $("f-q").addEventListener("input", () => apply(true));
  $("clear").addEventListener("click", () => { for (const name of [...FIELDS, "q"]) $("f-" + name).value = ""; sort = null; apply(true); });
  $("previous").addEventListener("click", () => { page -= 1; draw(); });
  $("next").addEventListener("click", () => { page += 1; draw(); });
  for (const button of document.querySelectorAll("#episodes th button")) {
    button.addEventListener("click", () => {
      const column = +button.dataset.column;
      sort = { column, down: sort && sort.column === column ? -sort.down : -1 };
      for (const other of document.querySelectorAll("#episodes th")) other.removeAttribute("aria-sort");
      button.parentElement.setAttribute("aria-sort", sort.down < 0 ? "descending" : "ascending");
      apply(false);
    });
  }
  window.addEventListener("hashchange", () => { if (restore()) $("episodes").scrollIntoView(); });
  window.addEventListener("beforeprint", () => { for (const details of document.querySelectorAll("details")) details.open = true; });
  if (!restore()) apply(false); else $("episodes").scrollIntoView();
})();
