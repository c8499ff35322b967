// What a cell shows when it is opened.
const panel = document.getElementById("panel");
let opened = -1, opener = null;

function openCell(i, from = null) {
  opened = i;
  opener = from ?? opener;
  panel.hidden = false;
  change({cell: cellKey(i)}, {quiet: true});
  const evidence = h("div", {class: "evidence", "aria-busy": "true"}, h("p", {class: "note"}, "Loading…"));
  panel.replaceChildren(...heading(i), stagesOf(i), ...against(i), evidence, ...overVersions(i), ...elsewhere(i), ...timeOf(i), ...commands(i));
  panel.scrollTop = 0;
  hideTip();
  if (from && from !== grid) panel.focus({preventScroll: true});
  // The panel takes room from the view; what was clicked stays in sight.
  if (from && from !== grid) requestAnimationFrame(() => from.scrollIntoView({block: "nearest", inline: "nearest"}));
  cellEvidence(i).then(found => { if (opened === i) showEvidence(evidence, i, found); },
    error => { if (opened === i) { evidence.replaceChildren(h("p", {class: "note"}, error.message)); evidence.setAttribute("aria-busy", "false"); } });
}

function closePanel() {
  if (panel.hidden) return false;
  panel.hidden = true;
  opened = -1;
  change({cell: ""}, {quiet: true});
  (opener?.isConnected ? opener : state.view === "matrix" ? grid : view).focus({preventScroll: true});
  opener = null;
  return true;
}

function heading(i) {
  const v = D.verdict[i], [word, , meaning] = D.verdicts[v], reason = reasonOf(i), flaky = D.flaky.get(i);
  const said = (D.findings.get(i) ?? []).map(one => one.map(part => D.strings[part]));
  return [
    h("div", {class: "titlebar"}, h("h2", {}, D.rows[D.row[i]]), h("a", {class: "icon", href: "#" + addressOf({cell: cellKey(i)}), title: "A link that opens this cell"}, "Link"), h("button", {class: "icon", type: "button", onclick: closePanel, "aria-label": "Close (Esc)", title: "Esc"}, "✕")),
    h("p", {class: "where"}, `${D.stages[D.stage[i]]} · ${columnLabel(D.column[i])}`),
    h("div", {class: "said"}, h("span", {class: "badge " + verdictClass(v), id: "opened-verdict"}, `${D.verdicts[v][1]} ${word}`), " ", h("span", {class: "soft"}, meaning),
      flaky ? h("p", {class: "soft"}, "Flaky: " + flaky.map(k => D.verdicts[k][0]).join(", ") + " on the same version.") : null),
    // One finding often says the reason word for word; it is read once.
    reason && !said.some(([, , detail]) => detail === reason) ? h("p", {class: "reason"}, reason) : null,
    h("div", {id: "findings"}, findingsOf(said)),
    upstream(i),
  ].filter(Boolean);
}

function findingsOf(list) {
  return list.map(([kind, check, detail]) => h("div", {class: "finding"}, h("b", {}, kind), " ", h("code", {}, check), h("br"), detail));
}

function upstream(i) {
  const url = D.strings[D.url.get(i) ?? 0];
  return /^https?:\/\//.test(url) ? h("p", {}, "Upstream: ", h("a", {href: url, rel: "noopener noreferrer", target: "_blank"}, url)) : null;
}

function jump(i) { return () => { if (state.view === "matrix") activate(placeOf(i)); if (opened !== i) openCell(i); }; }

function stagesOf(i) {
  const cells = D.stages.map((_, m) => D.cellAt(D.row[i], D.column[i], m)).filter(k => k >= 0);
  return h("div", {class: "strip stages", "aria-label": "Stages of this compile"}, cells.map(k =>
    h("button", {type: "button", "aria-current": k === i ? "true" : null, onclick: jump(k), title: describeCell(k)}, signOf(D.verdict[k]), D.stages[D.stage[k]])));
}

function timeOf(i) {
  const parts = D.stages.flatMap((stage, m) => { const k = D.cellAt(D.row[i], D.column[i], m); return k >= 0 ? [[stage, D.millis[k]]] : []; });
  return parts.some(part => part[1]) ? [h("h3", {}, "Time by stage"), waterfall(parts)] : [];
}

function elsewhere(i) {
  const cells = D.columns.map((_, c) => D.cellAt(D.row[i], c, D.stage[i])).filter(k => k >= 0);
  if (cells.length < 2) return [];
  return [h("h3", {}, "The same stage elsewhere"), h("div", {class: "strip"}, cells.slice(0, 60).map(k =>
    h("button", {type: "button", "aria-current": k === i ? "true" : null, onclick: jump(k), title: describeCell(k)}, signOf(D.verdict[k]), columnLabel(D.column[k]))))];
}

function overVersions(i) {
  const columns = seriesOf(D.column[i]);
  if (columns.length < 2) return [];
  const {kernels, matches, time} = plotsOf(D.row[i], columns);
  if (time.filter(point => point[1] != null).length < 2) return [];
  return [h("h3", {}, "Over versions"), h("div", {class: "plots"}, sparkline("kernels", kernels), sparkline("matches", matches), sparkline("time", time, seconds, false))];
}

// What the same cell of the version before it showed otherwise: facts, and texts side by side.
function against(i) {
  const pair = pairWith(D.column[i]), [before, after] = pair ? [pair.old, pair.new].map(c => D.cellAt(D.row[i], c, D.stage[i])) : [-1, -1];
  if (before < 0 || after < 0) return [];
  const place = h("div", {class: "against"});
  Promise.all([cellEvidence(before), cellEvidence(after)]).then(([old, now]) => {
    const texts = Object.keys(now.texts ?? {}).filter(name => old.texts?.[name] && now.texts[name] && String(old.texts[name]) !== String(now.texts[name]));
    const verdicts = D.verdict[before] !== D.verdict[after] ? [["verdict", D.verdicts[D.verdict[before]][0], D.verdicts[D.verdict[after]][0]]] : [];
    const rows = [...verdicts, ...leaves(old.facts, now.facts)], [from, to] = [before, after].map(k => versionOf(D.column[k]));
    if (!rows.length && !texts.length) return;
    place.append(h("h3", {}, `What differs: ${from} → ${to}`), h("table", {class: "facts"}, rows.slice(0, 60).map(([name, a, b]) => h("tr", {}, h("td", {}, name), h("td", {class: "mono"}, `${a} → ${b}`)))),
      ...texts.slice(0, 6).flatMap(name => [h("h3", {}, `${name}, ${from} and ${to}`), pairBox(name, old.texts[name], name, now.texts[name])]));
  }, () => {});
  return [place];
}

// [path, old, new] of what differs in two tables of facts; what only one of them has was not recorded by the other.
function leaves(a, b, path = "") {
  const table = value => value !== null && typeof value === "object" && !Array.isArray(value);
  const counts = [a, b].every(one => Object.values(one).every(value => typeof value === "number"));
  return Object.keys({...a, ...b}).flatMap(name => {
    const [x, y] = [a[name] ?? (counts ? 0 : undefined), b[name] ?? (counts ? 0 : undefined)], inner = path ? `${path}.${name}` : name;
    if (x === undefined || y === undefined || JSON.stringify(x) === JSON.stringify(y)) return [];
    return table(x) && table(y) ? leaves(x, y, inner) : [[inner, factText(x), factText(y)]];
  });
}
const factText = value => Array.isArray(value) ? value.map(factText).join(", ") || "none" : typeof value === "object" && value ? JSON.stringify(value) : String(value);

// -------------------------------------------------------------------------------------------- evidence
const OWN_SECTION = ["matches", "guards", "counters"];

function showEvidence(place, i, {facts = {}, texts = {}, reason, findings, micrograph, reused, cause, title}) {
  const parts = [];
  if (reason) panel.querySelector(".reason")?.replaceChildren(reason);
  if (title) parts.push(h("p", {class: "note"}, title));
  if (cause) parts.push(h("p", {}, "Blocked by ", h("code", {}, cause)));
  if (findings) panel.querySelector("#findings").replaceChildren(...findingsOf(findings));
  for (const name of OWN_SECTION) if (name in facts) parts.push(h("h3", {}, name), factValue(facts[name]));
  const rest = Object.entries(facts).filter(([name]) => !OWN_SECTION.includes(name));
  if (rest.length) parts.push(h("h3", {}, "Observed"), factTable(rest));
  const textPlace = h("div");
  parts.push(textPlace);
  earlierGraph(i, texts).then(earlier => textPlace.replaceChildren(...textsOf(earlier ? {...earlier, ...texts} : texts)));
  const run = D.runs[D.run.length ? D.run[i] : 0];
  const said = [["record", run.file], ["suite", run.suite], ["commit", run.commit], ["started", run.started], ["python", run.python], ["machine", run.machine],
    ...Object.entries(run.backends[backendOf(D.column[i])] ?? {}), ["micrograph digest", micrograph], ["reused", reused ? "from the run that was resumed" : ""]];
  parts.push(h("h3", {}, "Run"), factTable(said.filter(([, value]) => value)));
  place.replaceChildren(...parts);
  place.setAttribute("aria-busy", "false");
}

function factTable(entries) {
  return h("table", {class: "facts"}, entries.slice(0, 400).map(([name, value]) => h("tr", {}, h("td", {}, name), h("td", {class: "mono"}, factValue(value)))),
    entries.length > 400 ? h("tr", {}, h("td", {}, `and ${entries.length - 400} more`)) : null);
}

function factValue(value) {
  if (Array.isArray(value)) {
    if (!value.length) return "none";
    const simple = value.every(one => typeof one !== "object" || one === null);
    return simple && value.join(", ").length < 120 ? value.join(", ") : h("div", {}, value.slice(0, 300).map(one => h("div", {}, factValue(one))), value.length > 300 ? `and ${value.length - 300} more` : null);
  }
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value);
    if (!entries.length) return "none";
    return entries.every(([, one]) => typeof one !== "object" && String(one).length < 24) ? countsOf(entries) : factTable(entries);
  }
  return value === null ? "none" : String(value);
}

// Op counts and the like: many short pairs, read across.
function countsOf(entries) {
  return h("div", {class: "pairs"}, entries.slice(0, 400).map(([name, value]) => h("span", {}, name, " ", h("b", {}, String(value)))),
    entries.length > 400 ? `and ${entries.length - 400} more` : null);
}

// Texts named “x before” and “x after” stand side by side; the others one below the other.
function textsOf(texts) {
  const names = Object.keys(texts), parts = [], done = new Set();
  for (const name of names) {
    if (done.has(name)) continue;
    if (!/\bbefore\b/.test(name)) continue;
    if (!texts[name]) continue;
    const earlier = /\(of (\w+)\)/.exec(name)?.[1], stem = name.replace(/\bbefore\b/, "").replace(/\(of .*/, "").replace(/\s+/g, " ").trim();
    const after = earlier ? "graph" : names.find(other => /\bafter\b/.test(other) && other.replace(/\bafter\b/, "").replace(/\s+/g, " ").trim() === stem);
    if (!after || !texts[after]) continue;
    done.add(name).add(after);
    parts.push(h("h3", {}, `${stem || "graph"}, ` + (earlier ? `after ${earlier} and here` : "before and after")), pairBox(name, texts[name], after, texts[after]));
  }
  const rest = names.filter(name => !done.has(name)), missing = rest.filter(name => !texts[name]);
  for (const name of rest) if (texts[name]) parts.push(h("h3", {}, name), textBox(name, texts[name]));
  if (missing.length) parts.push(h("p", {class: "note"}, `Not beside the record when this page was made: ${missing.join(", ")}.`));
  return parts;
}

// A stage that shows only its own graph is shown beside that of the stage before it.
function earlierGraph(i, texts) {
  if (!texts.graph) return Promise.resolve(null);
  for (let m = D.stage[i] - 1; m >= 0; m--) {
    const k = D.cellAt(D.row[i], D.column[i], m);
    if (k >= 0) return cellEvidence(k).then(({texts: other = {}}) => {
      const digest = other["graph after"] ?? other.graph;
      return digest ? {[`graph before (of ${D.stages[m]})`]: digest} : null;
    }, () => null);
  }
  return Promise.resolve(null);
}

const isGraph = (name, text) => /graph|before|after/i.test(name) || text.slice(0, 2000).includes("def forward(");

function toolbar(box, label, modes) {
  const scroll = h("div", {class: "scroll", tabindex: 0});
  const buttons = modes.map(([name, draw]) => h("button", {class: "icon", type: "button", "aria-pressed": "false", onclick: event => {
    for (const other of buttons) other.setAttribute("aria-pressed", String(other === event.currentTarget));
    scroll.replaceChildren(draw());
  }}, name));
  box.replaceChildren(h("div", {class: "tools"}, h("span", {}, label), buttons.length > 1 ? buttons : null), scroll);
  buttons[0].click();
}

function pairBox(beforeName, beforeDigest, afterName, afterDigest) {
  const box = h("div", {class: "text", "aria-busy": "true"}, h("pre", {}, "Loading…"));
  Promise.all([fetchText(beforeDigest), fetchText(afterDigest)]).then(([before, after]) => {
    const sides = sideBySide(before.text, after.text);
    const modes = sides ? [["Side by side", () => sides.table]] : [];
    modes.push(["Before", () => code(beforeName, before)], ["After", () => code(afterName, after)]);
    const pictures = [[beforeName, before], [afterName, after]].map(([name, {text}]) => isGraph(name, text) ? drawGraph(text) : null);
    if (pictures[0]) modes.push(["Draw before", () => pictures[0]]);
    if (pictures[1]) modes.push(["Draw after", () => pictures[1]]);
    toolbar(box, sides ? (sides.differ ? `${sides.differ} lines differ` : "no difference") : "too long to compare", modes);
  }).catch(error => box.replaceChildren(h("pre", {}, error.message))).finally(() => box.setAttribute("aria-busy", "false"));
  return box;
}

function textBox(name, digest) {
  const box = h("div", {class: "text", "aria-busy": "true"}, h("pre", {}, "Loading…"));
  fetchText(digest).then(found => {
    const picture = isGraph(name, found.text) ? drawGraph(found.text) : null;
    const modes = [["Text", () => code(name, found)]];
    if (picture) modes.push(["Draw", () => picture]);
    const lines = found.text.split("\n").length;
    toolbar(box, `${count(lines)} lines`, modes);
  }).catch(error => box.replaceChildren(h("pre", {}, error.message))).finally(() => box.setAttribute("aria-busy", "false"));
  return box;
}

function code(name, {text, cut}) {
  const pre = highlight(text, languageOf(name, text));
  if (cut) pre.append("\n… cut here; the whole text is beside the record");
  return pre;
}

// --------------------------------------------------------------------------------------------- commands
const quote = word => /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";

const commandLine = line => h("div", {class: "cmd"}, h("code", {}, line), copyButton(line));

function commands(i) {
  const [backend, target] = D.columns[D.column[i]], name = cellName(i), row = D.rows[D.row[i]], stage = D.stages[D.stage[i]];
  const [, operator, dtype] = row.match(/^ops\.(.*):([^:]*)$/) ?? [];
  const lines = [`conformance show ${quote(name)}`, ...operator
    ? [`conformance ops -b ${quote(backend)} -t ${quote(target)} -k ${quote(operator)} --dtype ${dtype} -s ${stage}`]
    : [`conformance triage ${quote(name)}`,
      `pytest -m ${quote(`stage_${stage}`)} --backend ${quote(backend)} --target ${quote(target)} --micrograph ${quote(row)}`]];
  return [h("h3", {}, "See it yourself"), ...lines.map(commandLine)];
}

function copyButton(text, label = "Copy") {
  return h("button", {class: "icon", type: "button", title: text, onclick: event => {
    const button = event.currentTarget, say = word => { button.textContent = word; setTimeout(() => { button.textContent = label; }, 1200); };
    navigator.clipboard ? navigator.clipboard.writeText(text).then(() => say("Copied"), () => say("Not allowed")) : say("Not allowed");
  }}, label);
}
