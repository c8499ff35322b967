// What moved between two versions: the causes, ranked by what they cost, and the compiles that differ.
const MOVED = D.views.moved?.data;
const SHOWN_MEMBERS = 12, SHOWN_ROWS = 150;
const BOOKKEEPING = "bookkeeping";
let axisOpen = null;  // until the reader opens or closes it, a wide screen shows it
const pairKey = pair => `${seriesLabel(pair.new)}: ${versionOf(pair.old)} .. ${versionOf(pair.new)}`;
const pairTitle = pair => `${versionOf(pair.old)} → ${versionOf(pair.new)}`;

function findPair(old, now) { return MOVED.pairs.find(pair => pair.old === old && pair.new === now); }

// The two columns that are compared in each series: those of the address, else the two newest.
function chosenPairs() {
  const given = state.pair ? MOVED.pairs.find(pair => pairKey(pair) === state.pair) : null;
  if (given) return [given];
  return MOVED.series.filter(columns => seriesWanted(columns.at(-1))).map(columns => findPair(columns.at(-2), columns.at(-1))).filter(Boolean);
}

// The comparison that a column takes part in, if any.
function pairWith(column) { return MOVED ? chosenPairs().find(pair => pair.old === column || pair.new === column) : undefined; }

// Causes that several series share are one entry.
function mergedCauses(pairs) {
  const q = state.q.trim().toLowerCase(), found = new Map();
  for (const pair of pairs) for (const cause of pair.causes) {
    if (!wanted("stage", D.stages[cause.stage])) continue;
    const rows = cause.rows.filter(row => wanted("family", familyOf(D.rows[row])) &&
      (!q || cause.text.toLowerCase().includes(q) || D.rows[row].toLowerCase().includes(q)));
    if (!rows.length) continue;
    const key = [cause.rank, cause.stage, cause.text, backendOf(pair.new).split("_")[0]].join("\n");
    const entry = found.get(key) ?? {rank: cause.rank, stage: cause.stage, text: cause.text, headline: cause.headline, then: cause.then, expected: true, otherwise: true, parts: [], compiles: 0};
    entry.parts.push({pair, cause, rows});
    entry.compiles += rows.length;
    entry.expected &&= Boolean(cause.expected);
    entry.otherwise &&= Boolean(cause.otherwise);
    found.set(key, entry);
  }
  return [...found.values()].sort((a, b) => a.rank - b.rank || a.otherwise - b.otherwise || b.compiles - a.compiles || a.stage - b.stage);
}

function movedView() {
  const pairs = chosenPairs(), causes = mergedCauses(pairs);
  return [headline(pairs, causes), axis(pairs), MOVED.classes.map((_, rank) => classSection(rank, causes)), notCompared(pairs), differingRows(causes)];
}

// ------------------------------------------------------------------------------------------------ the axis
// Each series with its versions in time, and what came with each; the two that are compared are marked.
function axis(pairs) {
  const lines = MOVED.series.filter(columns => seriesWanted(columns[0])).map(columns => {
    const pair = pairs.find(pair => columns.includes(pair.new));
    const boxes = columns.map((c, k) => {
      const came = k ? findPair(columns[k - 1], c) : null, role = pair?.new === c ? "new" : pair?.old === c ? "old" : "";
      const between = pair && columns.indexOf(pair.old) < k && k < columns.indexOf(pair.new);
      const told = came ? describeCame(came) : "the first";
      return h("button", {type: "button", class: joined("version", role, between && "between"), "aria-pressed": String(Boolean(role)), disabled: !came,
        "aria-label": `${versionOf(c) || "unknown"}: ${told}${role ? `, the ${role} one` : ""}`, title: came ? `Against ${versionOf(columns[k - 1])}: ${told}` : "the first version",
        onclick: () => came && change({pair: pairKey(came)})}, h("b", {}, versionOf(c) || "unknown"), h("span", {}, came ? cameSigns(came) : " "));
    });
    return h("div", {class: "series"}, h("div", {class: "label"}, seriesLabel(columns[0]), h("span", {class: "soft"}, recordedLine(columns))), h("div", {class: "versions"}, boxes), pair ? chooser(columns, pair) : null);
  });
  const box = h("details", {class: "axis", open: axisOpen ?? !narrow.matches}, h("summary", {}, `Versions of ${lines.length} series`), lines,
    state.pair ? h("button", {type: "button", class: "quiet", onclick: () => change({pair: ""})}, "All: the two newest of each") : null);
  box.addEventListener("toggle", () => { axisOpen = box.open; });
  return box;
}

// When the records of a series were made; and that they cannot be compared, where no two of them can.
function recordedLine(columns) {
  const days = columns.flatMap(c => D.recorded[c].slice(0, 2)).filter(Boolean).sort(), dirty = columns.some(c => D.recorded[c][3]);
  const apart = MOVED.pairs.filter(pair => columns.includes(pair.new)).every(pair => !pair.cells[1]);
  return [dayRange(days[0], days.at(-1)), dirty ? "dirty tree" : "", apart ? "each of another revision of the suite" : ""].filter(Boolean).join(", ");
}

const cameCounts = pair => MOVED.classes.map((_, rank) => pair.causes.filter(cause => cause.rank === rank).length);
const cameSigns = pair => cameCounts(pair).map((n, rank) => n && MOVED.classes[rank][0] !== BOOKKEEPING ? `${MOVED.classes[rank][2]}${n}` : "").filter(Boolean).join(" ") || (pair.cells[1] ? "=" : "not comparable");
const describeCame = pair => cameCounts(pair).map((n, rank) => n ? `${n} ${MOVED.classes[rank][1]}` : "").filter(Boolean).join(", ") || (pair.cells[1] ? "nothing moved" : "nothing could be compared");

function chooser(columns, pair) {
  const pick = (label, value, options, onchange) => h("label", {}, label, " ", h("select", {onchange: event => onchange(Number(event.target.value))},
    options.map(c => h("option", {value: c, selected: c === value}, versionOf(c) || "unknown"))));
  const go = (old, now) => { const found = findPair(old, now); if (found) change({pair: pairKey(found)}); };
  const olds = columns.filter(c => findPair(c, pair.new)), news = columns.filter(c => columns.some(old => findPair(old, c)));
  if (columns.length < 3) return null;
  return h("div", {class: "chooser"}, pick("from", pair.old, olds, old => go(old, pair.new)),
    pick("to", pair.new, news, now => go(findPair(pair.old, now) ? pair.old : columns[columns.indexOf(now) - 1], now)));
}

// --------------------------------------------------------------------------------------------- the causes
function headline(pairs, causes) {
  const counts = MOVED.classes.map(([name, word, sign], rank) => {
    const found = causes.filter(cause => cause.rank === rank);
    if (!found.length || name === BOOKKEEPING) return null;
    return h("a", {class: "count r-" + name, href: "#", onclick: event => { event.preventDefault(); document.getElementById("class-" + name).scrollIntoView(); }},
      h("b", {}, `${sign} ${count(found.length)}`), " ", word);
  }).filter(Boolean);
  const total = [0, 1, 2].map(k => pairs.reduce((sum, pair) => sum + pair.cells[k], 0));
  const title = pairs.length === 1 ? `${seriesLabel(pairs[0].new)}: ${pairTitle(pairs[0])}` : "The two newest versions of each series";
  const warnings = [...new Set(pairs.flatMap(pair => pair.warnings))];
  return h("div", {class: "headline"}, h("h2", {}, title), h("div", {class: "counts"}, counts.length ? counts : h("b", {}, total[1] ? "Nothing moved." : "Nothing could be compared.")),
    h("p", {class: "soft"}, `${counted(total[0], "cell")} in both, ${count(total[1])} compared, ${count(total[2])} the same. One line a cause: compiles that differ in the same way at the same first stage.`),
    warnings.length ? h("ul", {class: "warnings"}, warnings.slice(0, 8).map(text => h("li", {}, text))) : null);
}

function classSection(rank, causes) {
  const [name, word, sign, meaning] = MOVED.classes[rank], found = causes.filter(cause => cause.rank === rank);
  if (!found.length) return null;
  const head = [h("span", {class: "mark r-" + name, "aria-hidden": "true"}, sign), " ", word, h("span", {class: "soft"}, ` ${counted(found.length, "cause")}: ${meaning}`)];
  const items = found.map(cause => causeItem(cause));
  if (name === BOOKKEEPING) return h("details", {class: "class", id: "class-" + name}, h("summary", {}, h("h2", {}, head)), items);
  return h("section", {class: "class", id: "class-" + name}, h("h2", {}, head), items);
}

function causeItem(cause) {
  // Where one series is compared, its name is in the headline: an example says more.
  const one = chosenPairs().length === 1 ? D.rows[cause.parts[0].rows[0]] : "";
  const where = one ? [one] : [...new Set(cause.parts.map(part => seriesLabel(part.pair.new)))];
  const item = h("details", {class: "cause"}, h("summary", {}, h("span", {class: "stage"}, D.stages[cause.stage]), h("span", {class: "what"}, cause.headline, cause.expected ? h("span", {class: "soft"}, " (expected)") : null),
    h("span", {class: "n"}, counted(cause.compiles, "compile")), h("span", {class: "where soft"}, where.length > 2 ? `${where.length} series` : where.join(", "))));
  item.addEventListener("toggle", () => { if (item.open && item.children.length === 1) item.append(...cause.parts.map(part => causePart(part, cause.parts.length > 1))); });
  return item;
}

function causePart({pair, cause, rows}, named) {
  const list = h("ul", {class: "members"}), all = rows.map(row => [row, cause.summaries[cause.rows.indexOf(row)]]);
  const member = ([row, summary]) => h("li", {}, h("button", {type: "button", class: "name", onclick: event => openCell(D.cellAt(row, pair.new, cause.stage), event.currentTarget)}, D.rows[row]),
    summary ? h("span", {class: "soft"}, " " + summary) : null);
  list.append(...all.slice(0, SHOWN_MEMBERS).map(member));
  if (all.length > SHOWN_MEMBERS) {
    const more = h("li", {}, h("button", {type: "button", class: "quiet", onclick: () => more.replaceWith(...all.slice(SHOWN_MEMBERS).map(member))}, `${all.length - SHOWN_MEMBERS} more`));
    list.append(more);
  }
  const texts = cause.texts.slice(0, 2).flatMap(([name, before, after]) => [h("h3", {}, `${name} of ${D.rows[cause.rows[0]]}: ${versionOf(pair.old)} and ${versionOf(pair.new)}`), pairBox(name, before, name, after)]);
  const after = cause.then ? h("p", {class: "soft"}, `Then: ${cause.then}`) : null;
  return h("div", {class: "part"}, named ? h("h3", {}, `${seriesLabel(pair.new)}: ${pairTitle(pair)}`) : null, list, reportLine(cause.url), after, texts, cause.commands.map(commandLine));
}

function reportLine(url) {
  return /^https:\/\//.test(url) ? h("p", {}, "Report: ", h("a", {href: url, rel: "noopener noreferrer", target: "_blank"}, url)) : null;
}

function notCompared(pairs) {
  const found = pairs.flatMap(pair => pair.uncompared.map(([reason, cells, example]) => [seriesLabel(pair.new), reason, cells, example]));
  if (!found.length) return null;
  const total = found.reduce((sum, one) => sum + one[2], 0);
  return h("details", {class: "class"}, h("summary", {}, h("h2", {}, "Not compared", h("span", {class: "soft"}, ` ${counted(total, "cell")} that say nothing about the compiler`))),
    h("div", {class: "wide", tabindex: 0}, h("table", {class: "facts"}, h("thead", {}, h("tr", {}, ["series", "cells", "why", "for example"].map(word => h("th", {scope: "col"}, word)))),
      h("tbody", {}, found.map(([series, reason, cells, example]) => h("tr", {}, h("td", {}, series), h("td", {class: "num"}, count(cells)), h("td", {}, reason), h("td", {class: "mono"}, example)))))));
}

// ------------------------------------------------------------------------------------- the rows that differ
function differingRows(causes) {
  const found = new Map();
  for (const cause of causes) if (MOVED.classes[cause.rank][0] !== BOOKKEEPING)
    for (const {pair, cause: one, rows} of cause.parts) for (const row of rows) {
      const key = `${row} ${pair.new}`;  // causes come by rank: the first of a row is its worst
      if (!found.has(key)) found.set(key, {row, pair, rank: cause.rank, stage: one.stage});
    }
  const all = [...found.values()].sort((a, b) => a.row - b.row || a.pair.new - b.pair.new);
  if (!all.length) return null;
  const body = h("tbody", {}), more = h("button", {type: "button", class: "quiet", onclick: () => draw(all.length)}), draw = end => {
    body.append(...all.slice(body.children.length, end).map(differingRow));
    more.hidden = body.children.length >= all.length;
    more.textContent = `${count(all.length - body.children.length)} more`;
  };
  draw(SHOWN_ROWS);
  const letters = h("span", {class: "letters", "aria-hidden": "true"}, D.letters.map((letter, m) => h("i", {title: D.stages[m]}, letter)));
  return h("section", {class: "class"}, h("h2", {}, "The compiles that differ", h("span", {class: "soft"}, ` ${count(all.length)}; the first stage that moved is framed`)),
    h("p", {class: "legend"}, stageLegend()),
    h("div", {class: "wide", tabindex: 0}, h("table", {class: "differ"}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "micrograph"), h("th", {scope: "col"}, "series"),
      h("th", {scope: "col"}, "old", letters), h("th", {scope: "col"}, "new", letters.cloneNode(true)))), body)), more);
}

function differingRow({row, pair, rank, stage}) {
  const strip = c => h("td", {}, h("div", {class: "signs-row"}, D.stages.map((_, m) => {
    const i = D.cellAt(row, c, m);
    return i < 0 ? h("i", {class: "c"}) : cellButton(i, m === stage ? "first" : "");
  }), h("span", {class: "soft v"}, versionOf(c))));
  return h("tr", {}, h("th", {scope: "row"}, h("span", {class: "mark r-" + MOVED.classes[rank][0], title: MOVED.classes[rank][1]}, MOVED.classes[rank][2]), " ", h("code", {}, D.rows[row])),
    h("td", {class: "soft"}, seriesLabel(pair.new)), strip(pair.old), strip(pair.new));
}

if (MOVED) {
  addView("moved", movedView);
  TABLES.set("moved", () => mergedCauses(chosenPairs()).map(cause => ({class: MOVED.classes[cause.rank][1], stage: D.stages[cause.stage], cause: cause.text, then: cause.then, compiles: cause.compiles,
    series: [...new Set(cause.parts.map(part => `${seriesLabel(part.pair.new)} ${pairTitle(part.pair)}`))].join("; "), micrographs: [...new Set(cause.parts.flatMap(part => part.rows.map(row => D.rows[row])))].join(" ")})));
}
