// Puts the page together.
function about() {
  const torch = [...new Set(D.runs.map(run => run.torch.split("+")[0]).filter(Boolean))].sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
  const suites = [...new Set(D.runs.map(run => run.suite).filter(Boolean))];
  const days = D.runs.map(run => run.started.slice(0, 10)).filter(Boolean).sort();
  const operators = D.views.operators?.data.rows.length ?? 0, micrographs = D.rows.filter(name => !operators || !name.startsWith("ops.")).length;
  const parts = [micrographs ? counted(micrographs, "micrograph") : "", operators ? counted(operators, "operator") : "", torch.length > 4 ? `torch ${torch[0]} … ${torch.at(-1)}` : torch.length ? "torch " + torch.join(", ") : "",
    suites.length === 1 ? "suite " + suites[0].slice(0, 12) : suites.length > 1 ? `${suites.length} suite revisions` : "",
    D.runs.length > 1 ? `${D.runs.length} records` : "", dayRange(days[0], days.at(-1))];
  document.getElementById("about").textContent = parts.filter(Boolean).join(" · ");
  document.getElementById("legend").textContent = stageLegend();
  if (D.problems.length) {
    const box = document.getElementById("problems");
    box.hidden = false;
    box.querySelector("summary").textContent = `${counted(D.problems.length, "problem")} in the records`;
    box.querySelector("ul").append(...D.problems.map(text => h("li", {}, text)));
  }
}
function stageLegend() { return "Stages: " + D.stages.map((stage, m) => `${D.letters[m]} ${stage}`).join(" · "); }

function refresh() {
  const kept = shown ? activeCell() : -1;
  select();
  paintBar();
  if (state.view === "matrix") layout();
  active = kept >= 0 ? placeOf(kept) : null;
  paintView();
  document.documentElement.dataset.painted = String(Number(document.documentElement.dataset.painted ?? 0) + 1);
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape") {
    const menu = document.querySelector("details.menu[open]");
    if (menu) { menu.open = false; menu.firstChild.focus(); }
    else if (typing && event.target.id === "q") { event.target.value ? change({q: ""}) : (state.view === "matrix" ? grid : view).focus(); }
    else closePanel();
    return;
  }
  if (event.key === "/" && !typing) { event.preventDefault(); document.getElementById("filterbox").open = true; const q = document.getElementById("q"); q.focus(); q.select(); return; }
  if (state.view !== "matrix") return;
  if (event.target.id === "q" && (event.key === "ArrowDown" || event.key === "Enter")) { event.preventDefault(); grid.focus(); if (!active) move(0, 0); return; }
  if (typing || !(event.target === grid || event.target === document.body || event.target === panel)) return;
  const page = Math.max(1, Math.floor(grid.clientHeight / ROW) - 3), deep = shown.stages.length;
  const moves = {ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [page, 0], PageUp: [-page, 0],
    Home: [0, -1e6], End: [0, 1e6], "]": [0, deep], "[": [0, -deep]};
  if (moves[event.key]) { event.preventDefault(); move(...moves[event.key]); }
  else if (event.key === "Enter" && activeCell() >= 0) { event.preventDefault(); openCell(activeCell(), grid); }
}

// On a wide screen the filters are always there; on a narrow one they are opened.
function arrangeFilters(narrow) { document.getElementById("filterbox").open = !narrow.matches; }

function start() {
  VIEWS.set("matrix", {label: "Matrix"});
  VIEWS.set("trends", {label: "Trends", draw: trendsView});
  VIEWS.set("time", {label: "Time", draw: timeView});
  state = readHash();
  about();
  buildMenus();
  document.getElementById("views").append(...[...VIEWS].map(([name, {label}]) => h("button", {type: "button", "data-view": name, onclick: () => change({view: name})}, label)));
  select();
  listeners.push(refresh);
  wireGrid();
  arrangeFilters(narrow);
  narrow.addEventListener("change", arrangeFilters);
  document.getElementById("q").addEventListener("input", event => change({q: event.target.value}));
  document.getElementById("reset").addEventListener("click", () => change({...emptyState(), view: state.view, cell: state.cell, pair: state.pair}));
  document.addEventListener("keydown", keys);
  addEventListener("hashchange", () => { state = readHash(); refresh(); openFromState(); });
  refresh();
  openFromState();
}

function openFromState() {
  const i = state.cell ? cellOfKey(state.cell) : -1;
  if (i < 0) { if (!panel.hidden) closePanel(); return; }
  if (state.view === "matrix") activate(placeOf(i));
  openCell(i);
}
start();
