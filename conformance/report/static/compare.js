// Two texts side by side, differences marked: lines by Myers' algorithm, words by their common ends.
const COMPARE_LINES = 6000, COMPARE_EDITS = 1500, CONTEXT = 4;

function compareLines(before, after) {
  let start = 0, a = before.length, b = after.length;
  while (start < a && start < b && before[start] === after[start]) start++;
  while (a > start && b > start && before[a - 1] === after[b - 1]) { a--; b--; }
  const middle = edits(before.slice(start, a), after.slice(start, b));
  return [...before.slice(0, start).map(line => [line, line]), ...middle, ...before.slice(a).map(line => [line, line])];
}

// Pairs of lines: [same, same], [gone, null], [null, come].
function edits(x, y) {
  const all = () => [...x.map(line => [line, null]), ...y.map(line => [null, line])];
  if (!x.length || !y.length) return all();
  const n = x.length, m = y.length, most = Math.min(n + m, COMPARE_EDITS), off = most + 1;
  const reach = new Int32Array(2 * most + 3), trail = [];
  for (let d = 0; d <= most; d++) {
    trail.push(reach.slice(off - d - 1, off + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let i = k === -d || (k !== d && reach[off + k - 1] < reach[off + k + 1]) ? reach[off + k + 1] : reach[off + k - 1] + 1;
      let j = i - k;
      while (i < n && j < m && x[i] === y[j]) { i++; j++; }
      reach[off + k] = i;
      if (i >= n && j >= m) return walkBack(x, y, trail, d);
    }
  }
  return all();
}

function walkBack(x, y, trail, d) {
  const pairs = [];
  let i = x.length, j = y.length;
  for (; d > 0; d--) {
    const reach = trail[d], at = k => reach[k + d + 1], k = i - j;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const from = down ? k + 1 : k - 1, fi = at(from), fj = fi - from;
    const bi = down ? fi : fi + 1, bj = down ? fj + 1 : fj;
    while (i > bi && j > bj) pairs.push([x[--i], y[--j]]);
    pairs.push(down ? [null, y[fj]] : [x[fi], null]);
    i = fi; j = fj;
  }
  while (i > 0 && j > 0) pairs.push([x[--i], y[--j]]);
  return pairs.reverse();
}

// A gone line beside the come line of the same place, so that a changed line is one row.
function align(pairs) {
  const rows = [];
  for (let k = 0; k < pairs.length;) {
    if (pairs[k][0] !== null && pairs[k][1] !== null) { rows.push(["same", ...pairs[k++]]); continue; }
    const gone = [], come = [];
    while (k < pairs.length && (pairs[k][0] === null || pairs[k][1] === null)) {
      pairs[k][0] === null ? come.push(pairs[k][1]) : gone.push(pairs[k][0]);
      k++;
    }
    for (let r = 0; r < Math.max(gone.length, come.length); r++) rows.push(["differ", gone[r] ?? null, come[r] ?? null]);
  }
  return rows;
}

function sideBySide(before, after) {
  const [x, y] = [before.split("\n"), after.split("\n")];
  if (x.length > COMPARE_LINES || y.length > COMPARE_LINES) return null;
  const rows = align(compareLines(x, y));
  const near = new Uint8Array(rows.length);
  rows.forEach(([kind], k) => { if (kind === "differ") near.fill(1, Math.max(0, k - CONTEXT), k + CONTEXT + 1); });
  const differ = rows.filter(row => row[0] === "differ").length;
  const table = h("table", {class: "sides", "data-differences": differ}, h("colgroup", {}, ["m", "", "m", ""].map(kind => h("col", {class: kind}))));
  for (let k = 0; k < rows.length;) {
    let same = k;
    while (same < rows.length && !near[same]) same++;
    if (same - k > 12 && differ) { table.append(foldRow(rows.slice(k, same))); k = same; continue; }
    do table.append(sideRow(...rows[k++])); while (k < same);
  }
  return {table, differ};
}

function foldRow(rows) {
  const line = h("tr", {}, h("td", {class: "fold", colspan: 4}, h("button", {class: "icon", type: "button",
    onclick: () => line.replaceWith(...rows.map(row => sideRow(...row)))}, `${rows.length} equal lines`)));
  return line;
}

function sideRow(kind, left, right) {
  if (kind === "same") return h("tr", {class: "same"}, h("td", {class: "m"}), h("td", {}, left), h("td", {class: "m"}), h("td", {}, right));
  const [a, b] = left !== null && right !== null ? marked(left, right) : [[left ?? ""], [right ?? ""]];
  return h("tr", {}, h("td", {class: "m " + (left === null ? "none" : "del")}, left === null ? "" : "−"), h("td", {class: left === null ? "none" : "del"}, a),
    h("td", {class: "m " + (right === null ? "none" : "add")}, right === null ? "" : "+"), h("td", {class: right === null ? "none" : "add"}, b));
}

// The part of two lines that differs, underlined: all between their common start and their common end.
function marked(left, right) {
  let start = 0, a = left.length, b = right.length;
  while (start < a && start < b && left[start] === right[start]) start++;
  while (a > start && b > start && left[a - 1] === right[b - 1]) { a--; b--; }
  // Two lines that share little are two lines, not one that changed.
  const shared = left.slice(0, start).trimStart().length + left.length - a;
  if (shared < .5 * Math.min(left.trim().length, right.trim().length)) return [[left], [right]];
  const parts = (text, end) => [text.slice(0, start), h("mark", {}, text.slice(start, end)), text.slice(end)];
  return [parts(left, a), parts(right, b)];
}
