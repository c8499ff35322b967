// What is shown, as a file: rows with named fields, written as CSV, JSON or Markdown.
const TABLES = new Map();  // view → rows; a view without one exports the cells that the filters choose

function shownCells() {
  const rows = [];
  for (let i = 0; i < D.n; i++) {
    if (shown.chosen[i] < 2) continue;
    const c = D.column[i];
    rows.push({cell: cellName(i), version: versionOf(c), machine: machineOf(c), verdict: D.verdicts[D.verdict[i]][0], reason: reasonOf(i), seconds: D.millis[i] / 1000});
  }
  return rows;
}

// A text that a spreadsheet would take for a formula is quoted.
const csvField = value => { const text = /^[=+\-@\t]/.test(String(value)) ? "'" + value : String(value ?? ""); return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
const markdownField = value => String(value ?? "").replace(/\s+/g, " ").replace(/[\\`*_[\]<>|~#&]/g, found => "\\" + found);

const EXPORTS = [
  ["csv", rows => [Object.keys(rows[0] ?? {}), ...rows.map(row => Object.values(row))].map(row => row.map(csvField).join(",")).join("\n") + "\n"],
  ["json", rows => JSON.stringify({address: "#" + addressOf(), rows}, null, 1) + "\n"],
  ["md", rows => {
    const names = Object.keys(rows[0] ?? {});
    const line = values => "| " + values.map(markdownField).join(" | ") + " |";
    return [line(names), "|" + names.map(() => " --- ").join("|") + "|", ...rows.map(row => line(Object.values(row)))].join("\n") + "\n";
  }],
];

function download(kind, write) {
  const rows = (TABLES.get(state.view) ?? shownCells)();
  const link = h("a", {download: `${state.view}.${kind}`, href: URL.createObjectURL(new Blob([write(rows)], {type: "text/plain"}))});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
