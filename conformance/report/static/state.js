// What is looked at. It lives in the address, so that a view can be sent to somebody.
const SETS = ["stage", "backend", "target", "machine", "version", "family", "verdict", "kind"];
const WORDS_IN_ADDRESS = ["q", "only", "cell", "pair"];
const narrow = matchMedia("(max-width: 700px)");
const ALL = "*";  // every version; without a choice, the newest of each series

// Views in their order; those of `D.views` are there only when the page has data for them.
const VIEWS = new Map();
function addView(name, draw) { if (name in D.views) VIEWS.set(name, {label: D.views[name].label, draw: () => draw(D.views[name].data)}); }
const firstView = () => [D.opens, "moved", "matrix"].find(name => VIEWS.has(name));

function emptyState() {
  return {view: firstView(), q: "", only: "", cell: "", pair: "", ...Object.fromEntries(SETS.map(name => [name, new Set()]))};
}
let state = null;
const listeners = [];

function readHash() {
  const found = emptyState();
  let given;
  try { given = new URLSearchParams(location.hash.slice(1)); } catch { return found; }
  for (const name of SETS) for (const value of given.getAll(name)) found[name].add(value);
  for (const name of WORDS_IN_ADDRESS) found[name] = given.get(name) ?? "";
  if (VIEWS.has(given.get("view"))) found.view = given.get("view");
  else if (found.cell || SETS.some(name => found[name].size)) found.view = "matrix";
  return found;
}

function addressOf(part = {}) {
  const of = {...state, ...part}, parts = new URLSearchParams();
  if (of.view !== firstView()) parts.set("view", of.view);
  for (const name of SETS) for (const value of of[name]) parts.append(name, value);
  for (const name of WORDS_IN_ADDRESS) if (of[name]) parts.set(name, of[name]);
  return parts.toString().replaceAll("%2F", "/").replaceAll("%40", "@");
}

function change(part, {quiet = false} = {}) {
  Object.assign(state, part);
  const hash = addressOf();
  if (location.hash.slice(1) !== hash) history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
  if (!quiet) for (const listen of listeners) listen();
}

function toggle(name, value) {
  const next = new Set(state[name]);
  next.has(value) ? next.delete(value) : next.add(value);
  change({[name]: next});
}

const filtered = () => state.q || state.only || SETS.some(name => state[name].size);
const wanted = (name, value) => !state[name].size || state[name].has(value);

// A cell in the address: its name, the version, and the machine where there are several.
const cellKey = i => `${cellName(i)}@${joined(versionOf(D.column[i]), machineOf(D.column[i]))}`;
function cellOfKey(key) {
  const [stage, backend, target] = key.split("/"), m = D.stages.indexOf(stage), rest = key.split("/").slice(3).join("/");
  for (let c = D.columns.length - 1; c >= 0 && m >= 0; c--) {
    if (backendOf(c) !== backend || targetOf(c) !== target) continue;
    for (const end of ["@" + joined(versionOf(c), machineOf(c)), "@" + versionOf(c), ""]) {
      const row = rest.endsWith(end) ? D.rows.indexOf(rest.slice(0, rest.length - end.length)) : -1;
      if (row >= 0) return D.cellAt(row, c, m);
    }
  }
  return -1;
}
