// The columns of the matrix, unpacked into arrays: a filter is one pass over them.
const raw = JSON.parse(document.getElementById("data").textContent);

function unpack(raw) {
  const n = raw.verdict.length, wide = raw.columns.length, deep = raw.stages.length;
  const data = {
    ...raw, n,
    row: new Uint32Array(n), column: new Uint32Array(n), stage: new Uint8Array(n),
    verdict: Uint8Array.from(raw.verdict), reason: Uint32Array.from(raw.reason), millis: Float64Array.from(raw.millis),
  };
  // Where a place of the full matrix has its cell; a typed array while the matrix is not absurdly sparse.
  const size = raw.rows.length * wide * deep, index = size < 2e7 ? new Int32Array(size).fill(-1) : null, places = new Map();
  let cell = 0;
  for (let k = 0; k < raw.at.length; k += 2) {
    for (let at = raw.at[k]; at < raw.at[k] + raw.at[k + 1]; at++, cell++) {
      data.stage[cell] = at % deep;
      data.column[cell] = Math.floor(at / deep) % wide;
      data.row[cell] = Math.floor(at / deep / wide);
      index ? (index[at] = cell) : places.set(at, cell);
    }
  }
  data.cellAt = (row, column, stage) => {
    const at = (row * wide + column) * deep + stage;
    return index ? index[at] : places.get(at) ?? -1;
  };
  for (const name of ["findings", "url", "flaky", "surprise", "apart", "kernels", "matches"]) {
    const [cells, values] = raw[name];
    data[name] = new Map(cells.map((at, k) => [at, values[k]]));
  }
  data.lower = null;
  data.familyNames = [...new Set(raw.rows.map(familyOf))];
  const families = new Map(data.familyNames.map((name, k) => [name, k]));
  data.family = Uint32Array.from(raw.rows.map(name => families.get(familyOf(name))));
  data.kinds = [...new Set([...data.findings.values()].flatMap(list => list.map(one => raw.strings[one[0]])))].sort();
  return data;
}

function familyOf(micrograph) { return micrograph.split(".")[0]; }

const D = unpack(raw);
const known = 10;  // verdicts of this version stand first, so their words are ours and safe as class names
const verdictClass = v => v < known ? "v-" + D.verdicts[v][0] : "v-other";
const verdictNumber = new Map(D.verdicts.map((v, k) => [v[0], k]));
const PASS = verdictNumber.get("pass");
const NOT_JUDGED = new Set(["unavailable", "blocked", "unsupported"].map(word => verdictNumber.get(word)));
const FAILS = new Set(["fail", "fallback", "error", "timeout", "xfail"].map(word => verdictNumber.get(word)));
const REFERENCE = "eager";  // not a compiler: that it passes says nothing about compilers

const backendOf = c => D.columns[c][0], targetOf = c => D.columns[c][1], versionOf = c => D.columns[c][2], machineOf = c => D.columns[c][3];
const joined = (...parts) => parts.filter(Boolean).join(" ");
const seriesLabel = c => joined(backendOf(c), targetOf(c), machineOf(c));
const columnLabel = c => joined(backendOf(c), targetOf(c), versionOf(c), machineOf(c));
const seriesOf = c => D.columns.flatMap((_, k) => seriesLabel(k) === seriesLabel(c) ? [k] : []);
const dayRange = (first, last) => first && last && first !== last ? `${first} to ${last}` : last || first;
// When a column was recorded, and what of it cannot be made again.
function recordedOf(c) {
  const [first, last, revisions, dirty] = D.recorded[c];
  return [dayRange(first, last), revisions > 1 ? `${revisions} revisions` : "", dirty ? "dirty tree" : ""].filter(Boolean).join(", ");
}
const dayOf = c => joined(D.recorded[c][1], D.recorded[c][3] && "dirty");
const cellName = i => [D.stages[D.stage[i]], backendOf(D.column[i]), targetOf(D.column[i]), D.rows[D.row[i]]].join("/");
const reasonOf = i => D.strings[D.reason[i]];
const isUnexpected = i => Boolean(D.surprise.get(i) ?? D.verdicts[D.verdict[i]][3]);
const numbers = new Intl.NumberFormat("en-US");
const count = n => numbers.format(n);
const counted = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

// ------------------------------------------------------------------------------------------- evidence
// Pieces of compressed JSON inside the page, opened when they are wanted.
const opening = new Map();

function openPiece(name) {
  if (!opening.has(name)) opening.set(name, unpacked(document.getElementById("piece-" + name)?.textContent));
  return opening.get(name);
}

async function unpacked(text) {
  if (text === undefined) throw new Error("This page was made without it.");
  if (typeof DecompressionStream === "undefined") throw new Error("This browser is too old to open the evidence (it has no DecompressionStream).");
  const bytes = Uint8Array.from(atob(text), character => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

const cellEvidence = i => openPiece("c" + Math.floor(i / D.chunk)).then(list => list[i % D.chunk]);
function fetchText(reference) {
  if (!reference) return Promise.reject(new Error("This text was not beside the record when the page was made."));
  return openPiece("t" + reference[0]).then(list => list[reference[1]]);
}

// --------------------------------------------------------------------------------------------- elements
// Text of a record only ever becomes a text node.
function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}
function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(2).filter(child => child != null && child !== false));
  return element;
}
function signOf(verdict) {
  return h("i", {class: "sign " + verdictClass(verdict), "aria-hidden": "true"}, D.verdicts[verdict][1]);
}
// A cell as a small button that opens it.
function cellButton(i, extra = "") {
  return h("button", {type: "button", class: `c on ${verdictClass(D.verdict[i])} ${extra}`, "aria-label": describeCell(i), title: describeCell(i),
    onclick: event => openCell(i, event.currentTarget)}, D.verdicts[D.verdict[i]][1]);
}
