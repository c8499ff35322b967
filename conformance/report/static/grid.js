// The matrix itself. Only what is in sight is in the document, so 100,000 cells scroll like a hundred.
const ROW = 24, CELL = 21, GAP = 16;
const grid = document.getElementById("grid"), head = document.getElementById("head"), body = document.getElementById("body");
let nameWidth = 240, active = null, drawn = "";  // active: {line, group, stage}, places among what is shown

function layout() {
  const longest = shown.lines.reduce((most, line) => Math.max(most, line < 0 ? 0 : D.rows[line].length - D.familyNames[D.family[line]].length), 14);
  nameWidth = Math.min(Math.max(200, longest * 7.6 + 50), Math.max(200, grid.clientWidth * .4));
  const width = nameWidth + shown.columns.length * groupPitch() + 20;
  body.style.height = shown.lines.length * ROW + 30 + "px";
  body.style.width = head.style.width = width + "px";
  grid.setAttribute("aria-rowcount", shown.lines.length);
  grid.setAttribute("aria-colcount", shown.columns.length * shown.stages.length);
  drawn = "";
}
// A group is as wide as its signs, but never narrower than its heading needs.
const groupPitch = () => Math.max(shown.stages.length * CELL + GAP, 118);
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
  const rows = [];
  for (let k = first; k < last; k++) rows.push(shown.lines[k] < 0 ? familyRow(k) : microRow(k, left, right));
  if (!shown.lines.length) rows.push(h("div", {class: "empty"}, "Nothing here: no cell is chosen by these filters."));
  body.replaceChildren(...rows);
  grid.setAttribute("aria-activedescendant", active ? "at" : "");
}

function paintHead(left, right) {
  const parts = [h("div", {class: "corner"}, `${count(shown.lines.filter(line => line >= 0).length)} micrographs`)];
  parts[0].style.width = nameWidth + "px";
  for (let k = left; k < right; k++) {
    const c = shown.columns[k], [backend, target, version] = D.columns[c], [pass, all] = shown.byColumn[c];
    const group = h("div", {class: "group", title: `${columnLabel(c)}: ${count(pass)} of ${count(all)} cells pass`},
      h("b", {}, backend), h("span", {}, [target, version].filter(Boolean).join(" · ")), h("span", {}, `${count(pass)} of ${count(all)}`),
      h("div", {class: "letters"}, shown.stages.map((stage, m) =>
        h("i", {title: D.stages[stage], class: active && active.group === k && active.stage === m ? "at" : null}, D.letters[stage]))));
    group.style.left = cellLeft(k, 0) + "px";
    group.style.width = groupPitch() - 8 + "px";
    parts.push(group);
  }
  head.replaceChildren(...parts);
}

function rowElement(k, className, ...name) {
  const row = h("div", {class: className, role: "row", "aria-rowindex": k + 1}, h("div", {class: "name", role: "rowheader"}, ...name));
  row.style.top = k * ROW + "px";
  row.style.width = body.style.width;
  row.firstChild.style.width = nameWidth + "px";
  return row;
}

function familyRow(k) {
  const family = -1 - shown.lines[k], [pass, all] = shown.byFamily(family);
  return rowElement(k, "row family", D.familyNames[family], h("em", {}, `${count(pass)} of ${count(all)}`));
}

function microRow(k, left, right) {
  const at = shown.lines[k], family = D.familyNames[D.family[at]], full = D.rows[at];
  const row = rowElement(k, "row", full.startsWith(family + ".") ? full.slice(family.length + 1) : full);
  row.firstChild.title = full;
  for (let g = left; g < right; g++) row.append(groupOf(k, at, g));
  return row;
}

// Signs by the thousand: made as markup, which is fast, of nothing but our own words and numbers.
const markOf = D.verdicts.map((verdict, v) => v < known ? verdict[1] : "?");
const classOf = D.verdicts.map((_, v) => "c " + verdictClass(v));

function groupOf(k, row, g) {
  const element = document.createElement("div");
  element.className = "g";
  element.style.left = cellLeft(g, 0) + "px";
  let marks = "";
  for (const stage of shown.stages) {
    const i = D.cellAt(row, shown.columns[g], stage);
    marks += i < 0 ? '<i class="c"></i>' : `<i class="${classOf[D.verdict[i]]}${shown.chosen[i] < 2 ? " off" : ""}${D.flaky.has(i) ? " flaky" : ""}" role="gridcell" data-i="${i}">${markOf[D.verdict[i]]}</i>`;
  }
  element.innerHTML = marks;
  // The style sheet places sixteen; a record of a newer suite may have more stages.
  for (let m = 16; m < element.children.length; m++) element.children[m].style.left = m * CELL + "px";
  if (active && active.line === k && active.group === g) {
    const here = element.children[active.stage];
    here.classList.add("at");
    here.id = "at";
    if (here.dataset.i) here.setAttribute("aria-label", describeCell(Number(here.dataset.i)));
  }
  return element;
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
  if (i >= 0 && i !== opened && !panel.hidden) openCell(i);
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
    layout();
    if (active && !panel.hidden) scrollTo(active);
    paintGrid();
  }).observe(grid);
  body.addEventListener("click", event => {
    const cell = event.target.closest(".c[data-i]");
    if (!cell) return;
    const i = Number(cell.dataset.i);
    activate(placeOf(i), {follow: false});
    openCell(i);
  });
  body.addEventListener("mouseover", event => {
    const cell = event.target.closest(".c[data-i]");
    cell ? showTip(describeCell(Number(cell.dataset.i)), cell) : hideTip();
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
