// Operators: a row an operator, a column a dtype, compiler and version; how each fares in one sign.
const operatorChoice = {bad: false, changed: D.only_changed};

// Columns that differ in the version only: does one of them say something else?
function operatorChanged(at, across) {
  const families = new Map();
  for (const [k, word, forms] of at) {
    const key = [seriesLabel(across[k][0]), across[k][1]].join(" ");
    families.set(key, (families.get(key) ?? new Set()).add(word + forms));
  }
  return [...families.values()].some(family => family.size > 1);
}

const operatorText = i => [reasonOf(i), ...(D.findings.get(i) ?? []).flat().map(part => D.strings[part])].join(" ").toLowerCase();

// What moved between two versions, what costs most first: an answer before the table. A click searches for the operator.
function operatorMoves(kinds, [old, now, moves]) {
  if (!seriesWanted(now)) return null;
  const some = kinds.map(([kind, meaning], k) => [kind, meaning, moves.filter(move => move[0] === k)]).filter(([, , found]) => found.length);
  return h("section", {}, h("h3", {}, `${seriesLabel(now)}: ${versionOf(old)} → ${versionOf(now)}`), some.length ? null : h("p", {}, "Nothing moved."),
    some.map(([kind, meaning, found], k) => h("details", {open: k < 2 ? "" : null}, h("summary", {title: meaning}, `${kind}: ${counted(new Set(found.map(move => move[1])).size, "operator")}`),
      h("div", {class: "wide", tabindex: 0}, h("table", {class: "moves"}, h("thead", {}, h("tr", {}, ["operator", "dtypes", "before", "now", "what"].map(name => h("th", {scope: "col"}, name)))),
        h("tbody", {}, found.map(([, name, dtypes, before, after, said]) => h("tr", {}, h("th", {scope: "row"}, h("button", {type: "button", class: "name", onclick: () => change({q: name})}, name)),
          [dtypes, before, after, said].map(text => h("td", {}, text))))))))));
}

function operatorsView({words, across, rows, kinds, moved}) {
  const columns = across.map((_, k) => k).filter(k => seriesWanted(across[k][0])), q = state.q.trim().toLowerCase(), wide = new Set(columns);
  const found = rows.map(([name, at]) => [name, at.filter(one => wide.has(one[0]))]).filter(([name, at]) => at.length && (!q || name.toLowerCase().includes(q) || at.some(one => operatorText(one[3]).includes(q)))
    && (!operatorChoice.bad || at.some(one => words[one[1]][4])) && (!operatorChoice.changed || operatorChanged(at, across)));
  const choice = (name, label) => h("label", {}, h("input", {type: "checkbox", checked: operatorChoice[name] ? "" : null, onchange: event => { operatorChoice[name] = event.target.checked; paintView(); }}), " ", label);
  const heads = columns.map(k => h("th", {scope: "col", title: `${columnLabel(across[k][0])}, ${across[k][1]}`}, h("span", {}, `${across[k][1]} ${versionOf(across[k][0])}`)));
  return [h("h2", {}, "Operators"), h("p", {class: "lead"}, `${counted(found.length, "operator")} of ${rows.length}. A sign is what every sampled call of an operator in a dtype gave; open one to read it.`),
    h("div", {class: "chips"}, words.map(([word, sign, meaning, look]) => h("span", {class: "chip", title: meaning}, h("i", {class: "sign v-" + look, "aria-hidden": "true"}, sign), word)),
      choice("bad", "only what is wrong"), choice("changed", "only what differs between versions")),
    moved.map(pair => operatorMoves(kinds, pair)),
    h("div", {class: "wide", tabindex: 0}, h("table", {class: "operators"}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "operator"), heads)),
      h("tbody", {}, found.map(([name, at]) => operatorRow(name, new Map(at.map(one => [one[0], one])), columns, across, words)))))];
}

function operatorRow(name, at, columns, across, words) {
  return h("tr", {}, h("th", {scope: "row"}, name), columns.map(k => {
    if (!at.has(k)) return h("td", {});
    const [, word, forms, i] = at.get(k), label = `${name} ${across[k][1]}, ${columnLabel(across[k][0])}: ${words[word][0]}${forms ? " (" + forms + ")" : ""}`;
    return h("td", {}, h("button", {type: "button", class: "v-" + words[word][3], title: label, "aria-label": label, onclick: event => openCell(i, event.currentTarget)}, words[word][1]));
  }));
}

addView("operators", operatorsView);
TABLES.set("operators", () => { const {words, across, rows} = D.views.operators.data; return rows.flatMap(([name, at]) => at.map(([k, word, forms, i]) =>
  ({operator: name, dtype: across[k][1], release: columnLabel(across[k][0]), is: words[word][0], forms, cell: cellName(i), reason: reasonOf(i)}))); });
