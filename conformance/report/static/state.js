// What is looked at. It lives in the address, so that a view can be sent to somebody.
const SETS = ["stage", "backend", "target", "version", "family", "verdict", "kind"];
const VIEWS = [["matrix", "Matrix"], ["heat", "Heat map"], ["trends", "Trends"], ["time", "Time"]];
const ALL = "*";  // every version; without a choice, the newest of each backend and target

function emptyState() {
  return {view: "matrix", q: "", only: "", cell: "", ...Object.fromEntries(SETS.map(name => [name, new Set()]))};
}
let state = emptyState();
let listeners = [];

function readHash() {
  const found = emptyState();
  let given;
  try { given = new URLSearchParams(location.hash.slice(1)); } catch { return found; }
  for (const name of SETS) for (const value of given.getAll(name)) found[name].add(value);
  for (const name of ["q", "only", "cell"]) found[name] = given.get(name) ?? "";
  if (VIEWS.some(([name]) => name === given.get("view"))) found.view = given.get("view");
  return found;
}

function writeHash() {
  const said = new URLSearchParams();
  if (state.view !== "matrix") said.set("view", state.view);
  for (const name of SETS) for (const value of state[name]) said.append(name, value);
  for (const name of ["q", "only", "cell"]) if (state[name]) said.set(name, state[name]);
  const hash = said.toString().replaceAll("%2F", "/").replaceAll("%40", "@");
  if (location.hash.slice(1) !== hash) history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
}

function change(part, {quiet = false} = {}) {
  Object.assign(state, part);
  writeHash();
  if (!quiet) for (const listen of listeners) listen();
}

function toggle(name, value) {
  const next = new Set(state[name]);
  next.has(value) ? next.delete(value) : next.add(value);
  change({[name]: next});
}

const filtered = () => state.q || state.only || SETS.some(name => state[name].size);

// A cell in the address: its name, and the version where there are several.
const cellKey = i => cellName(i) + (D.columns[D.column[i]][2] ? "@" + D.columns[D.column[i]][2] : "");
function cellOfKey(key) {
  const parts = key.split("/"), stage = D.stages.indexOf(parts[0]);
  const rest = parts.slice(3).join("/");
  for (let c = D.columns.length - 1; c >= 0; c--) {
    const [backend, target, variant] = D.columns[c];
    if (backend !== parts[1] || target !== parts[2]) continue;
    for (const name of [rest.endsWith("@" + variant) ? rest.slice(0, -variant.length - 1) : null, rest]) {
      const row = name === null ? -1 : D.rows.indexOf(name);
      if (row >= 0 && stage >= 0 && (name !== rest || !rest.includes("@"))) return D.cellAt(row, c, stage);
    }
  }
  return -1;
}
