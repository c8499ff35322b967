// The matrix itself. Only what is in sight is in the document, so 100,000 cells scroll like a hundred.
const ROW = 24, CELL = 21, GAP = 16;
const grid = document.getElementById("grid"), head = document.getElementById("head"), body = document.getElementById("body");
let nameWidth = 240, pitch = 160, active = null, drawn = "";  // active: {line, group, stage}, places among what is shown

function layout() {
  const longest = shown.lines.reduce((most, line) => Math.max(most, line < 0 ? 0 : D.rows[line].length - D.familyNames[D.family[line]].length), 14);
  nameWidth = Math.min(Math.max(150, longest * 7.6 + 50), Math.max(150, grid.clientWidth * (narrow.matches ? .62 : .42)));
  pitch = Math.max(shown.stages.length * CELL + GAP, 118, ...shown.columns.flatMap(headingLines).map(text => text.length * 6.9 + 12));
  const width = nameWidth + shown.columns.length * groupPitch() + 20;
  body.style.height = shown.lines.length * ROW + 30 + "px";
  body.style.width = head.style.width = width + "px";
  grid.setAttribute("aria-rowcount", shown.lines.length);
  grid.setAttribute("aria-colcount", shown.columns.length * shown.stages.length);
  drawn = "";
}
// A group is as wide as its signs, but never narrower than its heading needs.
const groupPitch = () => pitch;
const headingLines = c => [[targetOf(c), versionOf(c)].filter(Boolean).join(" · "), machineOf(c), dayOf(c)].filter(Boolean);
const cellLeft = (k, m) => nameWidth + k * groupPitch() + m * CELL;

function paintGrid() {
  const first = Math.max(0, Math.floor(grid.scrollTop / ROW) - 2);
  const last = Math.min(shown.lines.length, Math.ceil((grid.scrollTop + grid.clientHeight - head.offsetHeight) / ROW) + 2);
  const left = Math.max(0, Math.floor(grid.scrollLeft / groupPitch()));
  const right = Math.min(shown.columns.length, Math.ceil((grid.scrollLeft + grid.clientWidth - nameWidth) / groupPitch()));
  const now = [first, last, left, right, active?.line, active?.group, active?.stage].join();
  if (now === drawn) return;
  drawn = now;
  paintHead(left, right);
  paintRows(first, last, left, right);
  active ? grid.setAttribute("aria-activedescendant", "at") : grid.removeAttribute("aria-activedescendant");
}

function paintHead(left, right) {
  const parts = [h("div", {class: "corner"}, counted(shown.lines.filter(line => line >= 0).length, "micrograph"))];
  parts[0].style.width = nameWidth + "px";
  for (let k = left; k < right; k++) {
    const c = shown.columns[k], [pass, all] = shown.byColumn[c];
    const group = h("div", {class: "group", title: `${columnLabel(c)}: ${count(pass)} of ${count(all)} cells pass; recorded ${recordedOf(c)}`},
      h("b", {}, backendOf(c)), headingLines(c).map(text => h("span", {}, text)), h("span", {}, `${count(pass)} of ${count(all)}`),
      h("div", {class: "letters"}, shown.stages.map((stage, m) =>
        h("i", {title: D.stages[stage], class: active && active.group === k && active.stage === m ? "at" : null}, D.letters[stage]))));
    group.style.left = cellLeft(k, 0) + "px";
    group.style.width = groupPitch() - 8 + "px";
    parts.push(group);
  }
  head.style.setProperty("--lines", Math.max(1, ...shown.columns.map(c => headingLines(c).length)));
  head.replaceChildren(...parts);
}

// Rows are kept and written anew: most signs stay what they were, and a sign that stays costs nothing.
let pool = {rows: [], shape: ""};
const markOf = D.verdicts.map((verdict, v) => v < known ? verdict[1] : "?");
const classOf = D.verdicts.map((_, v) => "c on " + verdictClass(v));

function paintRows(first, last, left, right) {
  const size = Math.max(last - first, Math.ceil(grid.clientHeight / ROW) + 4), shape = [size, right - left, shown.stages.length].join();
  if (pool.shape !== shape) pool = {shape, rows: Array.from({length: size}, () => emptyRow(right - left))};
  const seen = [];
  for (let k = first; k < last; k++) {
    const row = pool.rows[k % size];  // a row keeps its element while it is scrolled
    if (row.top !== k) row.element.style.top = (row.top = k) * ROW + "px";
    setWidth(row);
    shown.lines[k] < 0 ? writeFamily(row, -1 - shown.lines[k]) : writeMicrograph(row, k, left, right);
    row.element.setAttribute("aria-rowindex", k + 1);
    seen.push(row.element);
  }
  if (!seen.length) seen.push(h("div", {class: "empty"}, "Nothing here: no cell is chosen by these filters."));
  if (seen.length !== body.children.length || seen.some((element, k) => element !== body.children[k])) body.replaceChildren(...seen);
}

function emptyRow(groups) {
  const signs = h("div", {class: "signs"}), cells = [];
  for (let g = 0; g < groups; g++) for (let m = 0; m < shown.stages.length; m++) {
    const element = h("i", {role: "gridcell"});
    element.style.left = g * groupPitch() + m * CELL + "px";
    cells.push({element, cell: -2, look: "", mark: ""});
    signs.append(element);
  }
  const name = h("div", {class: "name", role: "rowheader"}), note = h("div", {class: "why"});
  return {element: h("div", {class: "row", role: "row"}, name, signs, note), name, signs, note, cells, top: -1, width: "", left: -1, title: null, said: ""};
}

function setWidth(row) {
  if (row.width === body.style.width + nameWidth) return;
  row.width = body.style.width + nameWidth;
  row.element.style.width = body.style.width;
  row.name.style.width = nameWidth + "px";
  row.note.style.left = cellLeft(shown.columns.length, 0) + "px";
  row.left = -1;
}

function writeFamily(row, family) {
  const [pass, all] = shown.byFamily[family];
  row.element.className = "row family";
  row.name.title = row.title = "";
  row.name.replaceChildren(D.familyNames[family], h("em", {}, `${count(pass)} of ${count(all)}`));
  writeNote(row, "");
}

function writeMicrograph(row, k, left, right) {
  const at = shown.lines[k], full = D.rows[at], family = D.familyNames[D.family[at]];
  if (row.title !== full) {
    row.element.className = "row";
    row.name.title = row.title = full;
    row.name.textContent = full.startsWith(family + ".") ? full.slice(family.length + 1) : full;
  }
  if (row.left !== left) row.signs.style.left = cellLeft(row.left = left, 0) + "px";
  writeNote(row, roomForNotes() ? whyOf(at) : "");
  let n = 0;
  for (let g = left; g < right; g++) for (let m = 0; m < shown.stages.length; m++) {
    const here = active !== null && active.line === k && active.group === g && active.stage === m;
    writeCell(row.cells[n++], D.cellAt(at, shown.columns[g], shown.stages[m]), here);
  }
}

// Where the columns leave room, the first reason of a row stands beside it.
const roomForNotes = () => grid.clientWidth - cellLeft(shown.columns.length, 0) > 240;
function writeNote(row, said) {
  if (row.said !== said) row.note.textContent = row.said = said;
}
function whyOf(at) {
  for (const column of shown.columns) for (const stage of shown.stages) {
    const i = D.cellAt(at, column, stage);
    if (i >= 0 && shown.chosen[i] === 2 && D.reason[i] && (isUnexpected(i) || FAILS.has(D.verdict[i]))) return `${D.stages[stage]}: ${reasonOf(i)}`;
  }
  return "";
}

function writeCell(place, i, here) {
  place.cell = i;
  const verdict = D.verdict[i];
  const look = i < 0 ? "c" : classOf[verdict] + (shown.chosen[i] < 2 ? " off" : "") + (D.flaky.has(i) ? " flaky" : "");
  const mark = i < 0 ? "" : markOf[verdict], full = here ? look + " at" : look;
  if (place.look !== full) place.element.className = place.look = full;
  if (place.mark !== mark) place.element.textContent = place.mark = mark;
  if (here) {
    place.element.id = "at";
    place.element.setAttribute("aria-label", i < 0 ? "no cell" : describeCell(i));
  } else if (place.element.id) {
    place.element.removeAttribute("id");
    place.element.removeAttribute("aria-label");
  }
}

function cellOfElement(element) {
  const row = pool.rows.find(row => row.signs === element?.parentNode);
  return row?.cells.find(place => place.element === element)?.cell ?? -1;
}

function describeCell(i) {
  const reason = reasonOf(i);
  return `${D.rows[D.row[i]]}, ${columnLabel(D.column[i])}, ${D.stages[D.stage[i]]}: ${D.verdicts[D.verdict[i]][0]}` +
    (D.flaky.has(i) ? " (flaky: " + D.flaky.get(i).map(v => D.verdicts[v][0]).join(", ") + " on the same version)" : "") + (reason ? ". " + reason : "");
}

// ------------------------------------------------------------------------------------------- moving about
const activeCell = () => active ? D.cellAt(shown.lines[active.line], shown.columns[active.group], shown.stages[active.stage]) : -1;

function placeOf(i) {
  const place = {line: shown.lines.indexOf(D.row[i]), group: shown.columns.indexOf(D.column[i]), stage: shown.stages.indexOf(D.stage[i])};
  return Math.min(place.line, place.group, place.stage) < 0 ? null : place;
}

function move(dy, dx) {
  if (!shown.lines.length || !shown.columns.length) return;
  if (!active) return activate({line: shown.lines[0] < 0 ? 1 : 0, group: 0, stage: 0});
  const deep = shown.stages.length;
  const across = Math.min(Math.max(active.group * deep + active.stage + dx, 0), shown.columns.length * deep - 1);
  let line = Math.min(Math.max(active.line + dy, 0), shown.lines.length - 1);
  if (shown.lines[line] < 0) line += dy < 0 ? (line > 0 ? -1 : 1) : 1;
  activate({line, group: Math.floor(across / deep), stage: across % deep});
}

function activate(place, {follow = true} = {}) {
  active = place;
  if (place && follow) scrollTo(place);
  paintGrid();
  const i = activeCell();
  if (i >= 0 && i !== opened && !panel.hidden) openCell(i, grid);
}

function scrollTo(place) {
  const top = place.line * ROW, left = cellLeft(place.group, place.stage) - nameWidth;
  if (top < grid.scrollTop + ROW) grid.scrollTop = top - ROW;
  else if (top > grid.scrollTop + grid.clientHeight - head.offsetHeight - 2 * ROW) grid.scrollTop = top - grid.clientHeight + head.offsetHeight + 2 * ROW;
  if (left < grid.scrollLeft) grid.scrollLeft = left - GAP;
  else if (left > grid.scrollLeft + grid.clientWidth - nameWidth - 2 * CELL) grid.scrollLeft = left - grid.clientWidth + nameWidth + 3 * CELL;
}

function wireGrid() {
  let asked = false;
  grid.addEventListener("scroll", () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; paintGrid(); });
  });
  new ResizeObserver(() => {
    if (state.view !== "matrix") return;
    layout();
    if (active && !panel.hidden) scrollTo(active);
    paintGrid();
  }).observe(grid);
  let clicked = null;
  body.addEventListener("click", event => {
    const i = cellOfElement(event.target);
    if (i < 0) return;
    clicked = event;
    activate(placeOf(i), {follow: false});
    openCell(i, grid);
  });
  body.addEventListener("mouseover", event => {
    const i = cellOfElement(event.target);
    // The panel opens and moves another cell under a pointer that rests: nobody asked for that cell.
    const rests = clicked && event.screenX === clicked.screenX && event.screenY === clicked.screenY;
    if (!rests) clicked = null;
    i >= 0 && i !== opened && !rests ? showTip(describeCell(i), event.target) : hideTip();  // the panel says it already
  });
  body.addEventListener("mouseleave", hideTip);
}

const tip = document.getElementById("tip");
function showTip(text, near) {
  tip.textContent = text.length > 400 ? text.slice(0, 399) + "…" : text;
  const box = near.getBoundingClientRect(), wide = Math.min(460, tip.offsetWidth);
  tip.style.left = Math.max(8, Math.min(box.left, innerWidth - wide - 12)) + "px";
  tip.style.top = (box.bottom + 8 + tip.offsetHeight < innerHeight ? box.bottom + 8 : box.top - tip.offsetHeight - 8) + "px";
  tip.classList.add("on");
}
function hideTip() { tip.classList.remove("on"); }
