// Which cells are looked at. Stage, backend, target, machine and version choose columns; family chooses rows; the others choose
// cells, and a row or a column stays while one of its cells is chosen.
let shown = null;

const versionWanted = c => state.version.has(ALL) || (state.version.size ? state.version.has(versionOf(c)) : D.columns[c][4]);
const seriesWanted = c => wanted("backend", backendOf(c)) && wanted("target", targetOf(c)) && wanted("machine", machineOf(c));

function select() {
  const columns = D.columns.map((_, c) => seriesWanted(c) && versionWanted(c));
  const stages = D.stages.map(stage => wanted("stage", stage));
  const families = D.familyNames.map(name => wanted("family", name));
  const verdicts = D.verdicts.map(v => wanted("verdict", v[0]));
  const text = textMask(), alone = state.only ? onlyFails(state.only) : null;
  const kinds = state.kind.size ? new Set(D.strings.flatMap((text, k) => state.kind.has(text) ? [k] : [])) : null;

  const chosen = new Uint8Array(D.n);  // 0: not looked at, 1: looked at, 2: looked at and chosen
  const rowChosen = new Uint8Array(D.rows.length), columnChosen = new Uint8Array(D.columns.length);
  const counts = new Array(D.verdicts.length).fill(0), byColumn = D.columns.map(() => [0, 0]), byFamily = D.familyNames.map(() => [0, 0]);
  for (let i = 0; i < D.n; i++) {
    const row = D.row[i], column = D.column[i], verdict = D.verdict[i], family = D.family[row];
    if (!columns[column] || !stages[D.stage[i]] || !families[family]) continue;
    chosen[i] = 1;
    if (text && !text.row[row] && !text.cell[i]) continue;
    if (alone && !alone[i]) continue;
    if (kinds && !(D.findings.get(i) ?? []).some(one => kinds.has(one[0]))) continue;
    counts[verdict]++;
    byColumn[column][1]++;
    byFamily[family][1]++;
    if (verdict === PASS) { byColumn[column][0]++; byFamily[family][0]++; }
    if (!verdicts[verdict]) continue;
    chosen[i] = 2;
    rowChosen[row] = columnChosen[column] = 1;
  }
  const lines = [];  // row numbers; -1 - family for the line that names a family
  let last = -1;
  for (let row = 0; row < D.rows.length; row++) {
    if (!rowChosen[row]) continue;
    if (D.family[row] !== last) lines.push(-1 - (last = D.family[row]));
    lines.push(row);
  }
  shown = {
    columns: D.columns.flatMap((_, c) => columnChosen[c] ? [c] : []), stages: stages.flatMap((on, k) => on ? [k] : []),
    chosen, lines, counts, byColumn, byFamily, total: counts.reduce((a, b) => a + b, 0),
  };
}

function textMask() {
  const q = state.q.trim().toLowerCase();
  if (!q) return null;
  D.lower ??= {rows: D.rows.map(name => name.toLowerCase()), strings: D.strings.map(text => text.toLowerCase())};
  const row = Uint8Array.from(D.lower.rows, name => name.includes(q) ? 1 : 0);
  const string = Uint8Array.from(D.lower.strings, text => text.includes(q) ? 1 : 0);
  const cell = Uint8Array.from(D.reason, reason => string[reason]);
  for (const [i, list] of D.findings) if (list.some(one => one.some(part => string[part]))) cell[i] = 1;
  return {row, cell};
}

// Cells where this backend fails, no other compiler fails at the same stage of the same micrograph, and one at least passes.
function onlyFails(backend) {
  const size = D.rows.length * D.stages.length;
  const fails = new Uint8Array(size), passes = new Uint8Array(size);
  const others = D.columns.map((_, c) => wanted("target", targetOf(c)) && versionWanted(c) && backendOf(c) !== backend && backendOf(c) !== REFERENCE);
  for (let i = 0; i < D.n; i++) {
    if (!others[D.column[i]]) continue;
    const at = D.row[i] * D.stages.length + D.stage[i];
    if (FAILS.has(D.verdict[i])) fails[at] = 1;
    else if (D.verdict[i] === PASS) passes[at] = 1;
  }
  const mask = new Uint8Array(D.n);
  for (let i = 0; i < D.n; i++) {
    const at = D.row[i] * D.stages.length + D.stage[i];
    if (backendOf(D.column[i]) === backend && FAILS.has(D.verdict[i]) && passes[at] && !fails[at]) mask[i] = 1;
  }
  return mask;
}

// ------------------------------------------------------------------------------------------------ the bar
const unique = part => [...new Set(D.columns.map(column => column[part]).filter(Boolean))];
const MENUS = [
  ["stage", "Stage", () => D.stages], ["backend", "Backend", () => unique(0)], ["target", "Target", () => unique(1)], ["machine", "Machine", () => unique(3)],
  ["version", "Version", () => [...unique(2), ALL]], ["family", "Family", () => D.familyNames], ["kind", "Kind", () => D.kinds],
];

function buildMenus() {
  const place = document.getElementById("menus");
  for (const [name, label, options] of MENUS) {
    const values = options();
    if (values.filter(value => value !== ALL).length < 2 && name !== "kind" || !values.length) continue;
    const boxes = values.map(value => h("label", {},
      h("input", {type: "checkbox", value, onchange: () => toggle(name, value)}), value === ALL ? "all versions" : value));
    const note = name === "version" ? h("p", {}, "Without a choice: the newest version of each backend, target and machine.") : null;
    place.append(menu(name, label, note, boxes));
  }
  const compilers = unique(0).filter(name => name !== REFERENCE);
  if (compilers.length > 1) {
    const radios = ["", ...compilers].map(value => h("label", {},
      h("input", {type: "radio", name: "only", value, onchange: () => change({only: value})}), value || "any"));
    place.append(menu("only", "Only this backend fails",
      h("p", {}, "Cells where it fails, no other compiler fails at the same stage, and at least one passes."), radios));
  }
  place.append(menu("export", "Export", h("p", {}, "What is shown now, as a file."), EXPORTS.map(([kind, write]) =>
    h("button", {type: "button", class: "quiet", "data-export": kind, onclick: () => download(kind, write)}, kind.toUpperCase()))));
  document.addEventListener("click", event => {
    for (const open of document.querySelectorAll("details.menu[open]")) if (!open.contains(event.target)) open.open = false;
  });
}

function menu(name, label, note, items) {
  return h("details", {class: "menu", id: "menu-" + name, "data-name": name, "data-label": label}, h("summary", {}, label), h("div", {}, note, items));
}

function paintBar() {
  const q = document.getElementById("q");
  if (q.value !== state.q) q.value = state.q;
  for (const details of document.querySelectorAll("details.menu:not(#menu-export)")) {
    const {name, label} = details.dataset, single = name === "only";
    const chosen = single ? (state.only ? [state.only] : []) : [...state[name]];
    details.classList.toggle("on", chosen.length > 0);
    details.firstChild.textContent = chosen.length ? `${label}: ${chosen.map(v => v === ALL ? "all" : v).join(", ").slice(0, 40)}` : label;
    for (const input of details.querySelectorAll("input")) input.checked = single ? input.value === state.only : state[name].has(input.value);
  }
  document.getElementById("reset").hidden = !filtered();
  document.querySelector("#filterbox > summary").textContent = filtered() ? "Filter (on)" : "Filter";
  paintChips();
}

// The verdicts with their counts are the legend, the totals and the filter at once.
const OF_CELLS = new Set(["version", "kind", "only"]);  // menus that choose single cells
const ORDER = ["pass", "fail", "error", "timeout", "fallback", "xpass", "xfail", "blocked", "unsupported", "unavailable"];
function paintChips() {
  const cells = state.view !== "moved" && state.view !== "upstream";  // those views are not of single cells
  document.getElementById("chips").hidden = !cells;
  document.getElementById("totals").hidden = !cells;
  for (const details of document.querySelectorAll("details.menu")) details.hidden = !cells && OF_CELLS.has(details.dataset.name);
  const chips = D.verdicts.map(([word, , meaning], v) => {
    if (!shown.counts[v] && !state.verdict.has(word)) return null;
    return h("button", {class: "chip", type: "button", title: meaning, "data-verdict": word, "aria-pressed": String(state.verdict.has(word)),
      onclick: () => toggle("verdict", word)}, signOf(v), word, h("b", {}, count(shown.counts[v])));
  });
  const order = chip => { const k = ORDER.indexOf(chip.dataset.verdict); return k < 0 ? 99 : k; };
  const judged = D.verdicts.reduce((sum, _, v) => sum + (NOT_JUDGED.has(v) ? 0 : shown.counts[v]), 0);
  document.getElementById("totals").textContent = `${count(shown.counts[PASS])} of ${counted(shown.total, "cell")} ${shown.total === 1 ? "passes" : "pass"}` +
    (judged < shown.total ? `, ${count(judged)} were judged` : "");
  document.getElementById("chips").replaceChildren(...chips.filter(Boolean).sort((a, b) => order(a) - order(b)));
}
