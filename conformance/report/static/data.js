// The columns of the matrix, unpacked into arrays: a filter is one pass over them.
const raw = JSON.parse(document.getElementById("data").textContent);
const inlineEvidence = JSON.parse(document.getElementById("inline").textContent);

function unpack(raw) {
  const n = raw.verdict.length, wide = raw.columns.length, deep = raw.stages.length;
  const data = {
    ...raw, n,
    row: new Uint32Array(n), column: new Uint32Array(n), stage: new Uint8Array(n),
    verdict: Uint8Array.from(raw.verdict), reason: Uint32Array.from(raw.reason), millis: Float64Array.from(raw.millis),
    place: new Map(),
  };
  let cell = 0;
  for (let k = 0; k < raw.at.length; k += 2) {
    for (let at = raw.at[k]; at < raw.at[k] + raw.at[k + 1]; at++, cell++) {
      data.stage[cell] = at % deep;
      data.column[cell] = Math.floor(at / deep) % wide;
      data.row[cell] = Math.floor(at / deep / wide);
    }
  }
  // Where a place of the full matrix has its cell; a typed array while the matrix is not absurdly sparse.
  const size = raw.rows.length * wide * deep;
  const index = size < 2e7 ? new Int32Array(size).fill(-1) : null;
  cell = 0;
  for (let k = 0; k < raw.at.length; k += 2)
    for (let at = raw.at[k]; at < raw.at[k] + raw.at[k + 1]; at++, cell++) index ? (index[at] = cell) : data.place.set(at, cell);
  data.cellAt = (row, column, stage) => {
    const at = (row * wide + column) * deep + stage;
    return index ? index[at] : data.place.get(at) ?? -1;
  };
  for (const name of ["findings", "url", "flaky", "kernels", "matches"]) {
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

const columnLabel = c => [D.columns[c][0], D.columns[c][1], D.columns[c][2]].filter(Boolean).join(" ");
const cellName = i => [D.stages[D.stage[i]], D.columns[D.column[i]][0], D.columns[D.column[i]][1], D.rows[D.row[i]]].join("/");
const reasonOf = i => D.strings[D.reason[i]];
const numbers = new Intl.NumberFormat("en-US");
const count = n => numbers.format(n);

// ------------------------------------------------------------------------------------------- evidence
// A page opened from a file may not fetch its neighbours, but may run them: each is one call of this function.
const waiting = new Map();
const arrived = new Map(Object.entries(inlineEvidence));
window.conformanceEvidence = (digest, value) => {
  arrived.set(digest, value);
  waiting.get(digest)?.resolve(value);
  waiting.delete(digest);
};

function fetchEvidence(digest) {
  if (arrived.has(digest)) return Promise.resolve(arrived.get(digest));
  if (!D.folder) return Promise.reject(new Error("This page was made without its evidence."));
  if (!/^[0-9a-f]{1,64}$/.test(digest)) return Promise.reject(new Error("not a digest"));
  if (waiting.has(digest)) return waiting.get(digest).promise;
  const wait = {};
  wait.promise = new Promise((resolve, reject) => Object.assign(wait, {resolve, reject}));
  waiting.set(digest, wait);
  const script = document.createElement("script");
  script.src = encodeURIComponent(D.folder) + "/" + digest + ".js";
  script.onerror = () => {
    waiting.delete(digest);
    wait.reject(new Error(`Not found: keep the folder ${D.folder} beside this page.`));
  };
  document.head.append(script);
  return wait.promise;
}

function fetchText(digest) {
  if (arrived.has(digest)) return Promise.resolve(arrived.get(digest));
  if (D.missing.includes(digest) || !D.prefix && D.folder) return Promise.reject(new Error("This text was not beside the record when the page was made."));
  return fetchEvidence(digest.slice(0, D.prefix || 1)).then(bundle => bundle[digest]);
}

const cellEvidence = i => fetchEvidence(D.chunks[Math.floor(i / D.chunk)]).then(list => list[i % D.chunk]);

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
  element.append(...children.flat().filter(child => child != null && child !== false));
  return element;
}
function signOf(verdict) {
  return h("i", {class: "sign " + verdictClass(verdict), "aria-hidden": "true"}, D.verdicts[verdict][1]);
}
