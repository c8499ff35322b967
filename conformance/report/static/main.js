// Puts the page together.
function about() {
  const torch = [...new Set(D.runs.map(run => run.torch.split("+")[0]).filter(Boolean))], machines = [...new Set(D.runs.map(run => run.machine).filter(Boolean))];
  const suites = [...new Set(D.runs.map(run => run.suite).filter(Boolean))];
  const parts = [`${count(D.rows.length)} micrographs`, torch.length ? "torch " + torch.join(", ") : "", machines.join(", "),
    suites.length === 1 ? "suite " + suites[0].slice(0, 12) : suites.length > 1 ? `${suites.length} suite revisions` : "",
    D.runs.length > 1 ? `${D.runs.length} records` : D.runs[0]?.started.slice(0, 10)];
  document.getElementById("about").textContent = parts.filter(Boolean).join(" · ");
  if (D.problems.length) {
    const box = document.getElementById("problems");
    box.hidden = false;
    box.querySelector("summary").textContent = D.problems.length === 1 ? "1 problem in the records" : `${D.problems.length} problems in the records`;
    box.querySelector("ul").append(...D.problems.map(said => h("li", {}, said)));
  }
}

function refresh() {
  const kept = shown ? activeCell() : -1;
  select();
  paintBar();
  layout();
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
    else if (typing && event.target.id === "q") { event.target.value ? change({q: ""}) : grid.focus(); }
    else closePanel();
    return;
  }
  if (event.key === "/" && !typing) { event.preventDefault(); const q = document.getElementById("q"); q.focus(); q.select(); return; }
  if (event.target.id === "q" && (event.key === "ArrowDown" || event.key === "Enter")) { event.preventDefault(); grid.focus(); if (!active) move(0, 0); return; }
  if (typing || state.view !== "matrix" || !(event.target === grid || event.target === document.body || event.target === panel)) return;
  const page = Math.max(1, Math.floor(grid.clientHeight / ROW) - 3), deep = shown.stages.length;
  const moves = {ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [page, 0], PageUp: [-page, 0],
    Home: [0, -1e6], End: [0, 1e6], "]": [0, deep], "[": [0, -deep]};
  if (moves[event.key]) { event.preventDefault(); move(...moves[event.key]); }
  else if (event.key === "Enter" && activeCell() >= 0) { event.preventDefault(); openCell(activeCell()); }
}

function start() {
  about();
  document.getElementById("views").append(...VIEWS.map(([name, label]) => h("button", {type: "button", "data-view": name, onclick: () => change({view: name})}, label)));
  buildMenus();
  state = readHash();
  select();
  listeners.push(refresh);
  wireGrid();
  document.getElementById("q").addEventListener("input", event => change({q: event.target.value}));
  document.getElementById("reset").addEventListener("click", () => change({...emptyState(), view: state.view, cell: state.cell}));
  document.addEventListener("keydown", keys);
  addEventListener("hashchange", () => { state = readHash(); refresh(); openFromState(); });
  refresh();
  openFromState();
}

function openFromState() {
  const i = state.cell ? cellOfKey(state.cell) : -1;
  if (i < 0) { if (!panel.hidden) closePanel(); return; }
  activate(placeOf(i));
  openCell(i);
}
start();
