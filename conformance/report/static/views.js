// The other ways to look at what the filters choose: heat map, trends over versions, time by stage.
const view = document.getElementById("view");
const TREND_ROWS = 200, SLOW_ROWS = 15;

function paintView() {
  const matrix = state.view === "matrix";
  grid.hidden = !matrix;
  view.hidden = matrix;
  for (const button of document.querySelectorAll("#views button")) button.setAttribute("aria-current", button.dataset.view === state.view ? "page" : "false");
  if (matrix) return paintGrid();
  view.replaceChildren(...{heat: heatView, trends: trendsView, time: timeView}[state.view]());
}

// ---------------------------------------------------------------------------------------------- heat map
function heatView() {
  const backends = [...new Set(shown.columns.map(c => D.columns[c][0]))], W = 132, H = 54, left = 190, top = 34;
  const groups = new Map(shown.columns.map(c => [c, columnLabel(c)]));
  const rows = [...groups.keys()];
  const cells = rows.flatMap((c, r) => shown.stages.map((stage, k) => heatCell(c, stage, left + k * W, top + r * H, W - 6, H - 6)));
  const heads = shown.stages.map((stage, k) => s("text", {x: left + k * W + (W - 6) / 2, y: top - 12, "text-anchor": "middle", "font-size": 13, "font-weight": 600}, D.stages[stage]));
  const names = rows.map((c, r) => {
    const [backend, target, version] = D.columns[c];
    return [s("text", {x: left - 16, y: top + r * H + 21, "text-anchor": "end", "font-size": 13, "font-weight": 600}, clip(backend)),
      s("text", {x: left - 16, y: top + r * H + 37, "text-anchor": "end", "font-size": 12, class: "soft"}, clip([target, version].filter(Boolean).join(" · ")))];
  }).flat();
  const width = left + shown.stages.length * W + 10, height = top + rows.length * H + 10;
  return [h("h2", {}, "Stage × backend"),
    h("p", {class: "lead"}, `How many cells pass, of all that stand there: ${count(shown.counts[PASS])} of ${count(shown.total)}. A cell that could not be observed, or that fell back, is not a pass. Choose a field to see its cells.`),
    backends.length ? s("svg", {class: "heat", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Heat map by stage and backend"}, heads, names, cells) : h("p", {class: "note"}, "Nothing is chosen.")];
}

function heatCell(column, stage, x, y, w, height) {
  const tally = shown.tally(stage, column);
  if (!tally.some(Boolean)) return s("rect", {x, y, width: w, height, rx: 6, fill: "var(--wash)", opacity: .5});
  const all = tally.reduce((a, b) => a + b, 0), pass = tally[PASS];
  const bad = D.verdicts.reduce((sum, v, k) => sum + (v[3] ? tally[k] : 0), 0), judged = D.verdicts.reduce((sum, _, k) => sum + (NOT_JUDGED.has(k) ? 0 : tally[k]), 0);
  const say = D.verdicts.flatMap(([word], k) => tally[k] ? [`${count(tally[k])} ${word}`] : []).join(", ");
  const [backend, target, version] = D.columns[column];
  const go = () => change({view: "matrix", stage: new Set([D.stages[stage]]), backend: new Set([backend]), target: new Set([target]), version: version ? new Set([version]) : new Set()});
  const fail = judged ? (judged - pass) / judged : 0;
  // Red on neutral, not red on green: a mixture of the two is mud.
  const red = Math.round(7 + 93 * fail ** .75);
  const base = !judged ? "var(--wash)" : fail ? `color-mix(in oklab, var(--fail) ${red}%, var(--card))` : "var(--pass)";
  const ink = !judged ? "var(--soft)" : !fail ? "var(--pass-ink)" : red > 60 ? "var(--fail-ink)" : "var(--ink)";
  const group = s("g", {class: "hot", role: "button", tabindex: 0, "aria-label": `${D.stages[stage]}, ${columnLabel(column)}: ${count(pass)} of ${count(all)} pass; ${say}`,
    onclick: go, onkeydown: event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); go(); } }},
    s("title", {}, say), s("rect", {x, y, width: w, height, rx: 6}),
    s("text", {x: x + w / 2, y: y + 21, "text-anchor": "middle", "font-size": 14, "font-weight": 650}, judged ? Math.round(100 * pass / all) + "%" : "·"),
    s("text", {x: x + w / 2, y: y + 37, "text-anchor": "middle", "font-size": 11}, bad ? `${count(pass)} of ${count(all)}, ✗ ${count(bad)}` : `${count(pass)} of ${count(all)}`));
  group.querySelector("rect").style.fill = base;
  for (const text of group.querySelectorAll("text")) text.style.fill = ink;
  return group;
}

// ------------------------------------------------------------------------------------------------- trends
function trendsView() {
  const groups = new Map();
  D.columns.forEach(([backend, target], c) => {
    if ((!state.backend.size || state.backend.has(backend)) && (!state.target.size || state.target.has(target))) {
      const key = backend + " " + target;
      groups.set(key, [...groups.get(key) ?? [], c]);
    }
  });
  const several = [...groups.values()].filter(columns => columns.length > 1);
  if (!several.length) return [h("h2", {}, "Over versions"), h("p", {class: "lead"}, "This page was made of one version of each backend. Give several records to see what moved between them: conformance matrix 2.11.jsonl 2.15.jsonl -o matrix.html")];
  const rows = shown.lines.filter(line => line >= 0), found = [];
  for (const row of rows) for (const columns of several) {
    const plots = plotsOf(row, columns);
    const weight = (moved(plots.kernels) ? 2 : 0) + (moved(plots.matches) ? 2 : 0);
    if (plots.time.some(point => point[1] != null)) found.push({row, columns, plots, weight});
  }
  const changed = found.filter(one => one.weight).length;
  found.sort((a, b) => b.weight - a.weight);
  const items = found.slice(0, TREND_ROWS).map(({row, columns, plots}) => h("div", {class: "trend"},
    h("div", {}, h("code", {}, D.rows[row]), h("div", {class: "soft"}, `${D.columns[columns[0]][0]} ${D.columns[columns[0]][1]}, ${columns.length} versions`)),
    sparkline("kernels", plots.kernels), sparkline("matches", plots.matches), sparkline("compile time", plots.time, seconds)));
  return [h("h2", {}, "Over versions"),
    h("p", {class: "lead"}, `Kernels or matches moved in ${count(changed)} of ${count(found.length)} compiles; those come first. A red point differs from the version before it.` +
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
  const partsOf = (row, c) => D.stages.flatMap((stage, m) => { const i = D.cellAt(row, c, m); return i >= 0 ? [[stage, D.millis[i]]] : []; });
  const scale = Math.max(1, ...sums.map((sum, k) => numbers[k] ? sum.reduce((a, b) => a + b, 0) / numbers[k] : 0));
  return [h("h2", {}, "Where compile time goes"),
    h("p", {class: "lead"}, "The mean compile of each backend and target: a bar a stage, each starting where the one before it ends. All to one scale."),
    ...shown.columns.flatMap((c, k) => numbers[k] ? [h("h3", {}, `${columnLabel(c)} · mean of ${count(numbers[k])} compiles`),
      waterfall(D.stages.map((stage, m) => [stage, sums[k][m] / numbers[k]]), {width: 760, scale})] : []),
    h("h2", {class: "gap"}, "The slowest compiles"),
    ...slow.slice(0, SLOW_ROWS).flatMap(([all, row, c]) => [h("h3", {}, `${D.rows[row]} · ${columnLabel(c)} · ${seconds(all)}`), waterfall(partsOf(row, c), {width: 760, scale: slow[0][0]})])];
}
