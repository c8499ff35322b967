// The views that are drawn from the cells: the matrix, trends over versions, time by stage.
const view = document.getElementById("view");
const TREND_ROWS = 200, SLOW_ROWS = 15;

function paintView() {
  const matrix = state.view === "matrix";
  grid.hidden = !matrix;
  view.hidden = matrix;
  document.getElementById("legend").hidden = !matrix;
  for (const button of document.querySelectorAll("#views button")) button.setAttribute("aria-current", button.dataset.view === state.view ? "page" : "false");
  if (matrix) return paintGrid();
  view.replaceChildren(...VIEWS.get(state.view).draw().flat(2).filter(Boolean));
  view.setAttribute("aria-label", VIEWS.get(state.view).label);
}

// ------------------------------------------------------------------------------------------------- trends
// The columns of each series that the filters leave: one backend and target on one machine, the oldest version first.
function seriesShown() {
  const groups = new Map();
  D.columns.forEach((_, c) => { if (seriesWanted(c)) groups.set(seriesLabel(c), [...groups.get(seriesLabel(c)) ?? [], c]); });
  return [...groups.values()];
}

function trendsView() {
  const several = seriesShown().filter(columns => columns.length > 1);
  if (!several.length) return [h("h2", {}, "Over versions"), h("p", {class: "lead"}, "This page was made of one version of each backend, target and machine. Give several records to see what moved between them: conformance matrix 2.11.jsonl 2.15.jsonl -o matrix.html")];
  const rows = shown.lines.filter(line => line >= 0), found = [];
  let apart = 0;
  for (const row of rows) for (const columns of several) {
    const plots = plotsOf(row, columns), points = plots.time.filter(point => point[1] != null).length;
    const weight = (moves(plots.kernels) ? 2 : 0) + (moves(plots.matches) ? 2 : 0);
    if (points > 1) found.push({row, columns, plots, weight});
    else if (points && columns.filter(c => compileMillis(row, c) != null).length > 1) apart++;
  }
  const changed = found.filter(one => one.weight).length;
  found.sort((a, b) => b.weight - a.weight);
  const items = found.slice(0, TREND_ROWS).map(({row, columns, plots}) => h("div", {class: "trend"},
    h("div", {}, h("code", {}, D.rows[row]), h("div", {class: "soft"}, `${seriesLabel(columns[0])}, ${columns.length} versions`)),
    sparkline("kernels", plots.kernels), sparkline("matches", plots.matches), sparkline("time", plots.time, seconds, false)));
  return [h("h2", {}, "Over versions"),
    h("p", {class: "lead"}, `Kernels or matches moved in ${count(changed)} of ${counted(found.length, "compile")}; those come first. A red point differs from the version before it. Machines are never mixed.` +
      (apart ? ` ${counted(apart, "compile")} ${apart === 1 ? "is" : "are"} not drawn: another revision of the suite recorded the older versions.` : "") +
      (found.length > TREND_ROWS ? ` The first ${TREND_ROWS} are drawn; filter to see others.` : "")), ...items];
}

// --------------------------------------------------------------------------------------------------- time
function timeView() {
  const rows = shown.lines.filter(line => line >= 0), slow = [];
  const sums = shown.columns.map(() => new Float64Array(D.stages.length)), numbers = shown.columns.map(() => 0);
  shown.columns.forEach((c, k) => rows.forEach(row => {
    const all = compileMillis(row, c);
    if (all == null) return;
    numbers[k]++;
    slow.push([all, row, c]);
    D.stages.forEach((_, m) => { const i = D.cellAt(row, c, m); if (i >= 0) sums[k][m] += D.millis[i]; });
  }));
  slow.sort((a, b) => b[0] - a[0]);
  const width = Math.min(760, Math.max(300, view.clientWidth - 40));
  const partsOf = (row, c) => D.stages.flatMap((stage, m) => { const i = D.cellAt(row, c, m); return i >= 0 ? [[stage, D.millis[i]]] : []; });
  const scale = Math.max(1, ...sums.map((sum, k) => numbers[k] ? sum.reduce((a, b) => a + b, 0) / numbers[k] : 0));
  return [h("h2", {}, "Where the time goes"),
    h("p", {class: "lead"}, "The mean of each backend and target: a bar a stage, each starting where the one before it ends. All to one scale."),
    ...shown.columns.flatMap((c, k) => numbers[k] ? [h("h3", {}, `${columnLabel(c)} · mean of ${counted(numbers[k], "compile")}`),
      waterfall(D.stages.map((stage, m) => [stage, sums[k][m] / numbers[k]]), {width, scale})] : []),
    h("h2", {class: "gap"}, "The slowest"),
    ...slow.slice(0, SLOW_ROWS).flatMap(([all, row, c]) => [h("h3", {}, `${D.rows[row]} · ${columnLabel(c)} · ${seconds(all)}`), waterfall(partsOf(row, c), {width, scale: slow[0][0]})])];
}
