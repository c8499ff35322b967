// Public reports: a row a report, a column a release and target; alive, fixed, or not observable.
function upstreamView({states, reports}) {
  const columns = [...new Set(reports.flatMap(report => report.at.map(one => one[0])))].filter(seriesWanted).sort((a, b) => a - b), q = state.q.trim().toLowerCase();
  const found = reports.filter(report => !q || joined(report.name, report.title).toLowerCase().includes(q)).filter(report => report.at.some(one => columns.includes(one[0])))
    .sort((a, b) => worstNow(a, columns) - worstNow(b, columns) || b.at.length - a.at.length);
  const heads = columns.map(c => h("th", {scope: "col"}, backendOf(c), h("br"), joined(targetOf(c), machineOf(c)), h("br"), versionOf(c)));
  const counts = states.map(([word, sign, meaning], k) => h("span", {class: "chip", title: meaning}, h("i", {class: "sign u-" + k, "aria-hidden": "true"}, sign), word,
    h("b", {}, count(found.filter(report => report.at.some(one => one[1] === k && columns.includes(one[0]))).length))));
  return [h("h2", {}, "Upstream reports"), h("p", {class: "lead"}, "What each release does with a public report: measured here, never declared. What is alive in the newest comes first."), h("div", {class: "chips"}, counts),
    h("div", {class: "wide", tabindex: 0}, h("table", {class: "reports"}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "report"), h("th", {scope: "col"}, "stage"), heads)),
      h("tbody", {}, found.map(report => reportRow(report, columns, states)))))];
}

// The first of the states (alive, fixed, …) that the newest version of some series is in: what is alive now comes first, then what most columns show.
function worstNow(report, columns) {
  return Math.min(9, ...report.at.filter(one => D.columns[one[0]][4] && columns.includes(one[0])).map(one => one[1]));
}

function reportRow(report, columns, states) {
  const at = new Map(report.at.map(one => [one[0], one]));
  const name = /^https:\/\//.test(report.url) ? h("a", {href: report.url, rel: "noopener noreferrer", target: "_blank"}, report.name) : h("code", {}, report.name);
  const repro = `conformance triage ${quote(cellName(report.shown))}`;
  return h("tr", {}, h("th", {scope: "row"}, name, h("div", {class: "title"}, report.title), h("div", {class: "soft"}, h("code", {}, D.rows[D.row[report.shown]]), " ", copyButton(repro, "Copy repro"))),
    h("td", {class: report.stage ? null : "none", "data-release": "at"}, report.stage || h("span", {class: "soft"}, "–")),
    columns.map(c => {
      if (!at.has(c)) return h("td", {class: "none"}, h("span", {class: "soft"}, "–"));
      const [, k, i] = at.get(c), label = `${report.name}, ${columnLabel(c)}: ${states[k][0]}. ${describeCell(i)}`;
      return h("td", {"data-release": columnLabel(c)}, h("button", {type: "button", class: "state u-" + k, title: label, "aria-label": label, onclick: event => openCell(i, event.currentTarget)}, states[k][1], " ", states[k][0]));
    }));
}

addView("upstream", upstreamView);
TABLES.set("upstream", () => D.views.upstream.data.reports.flatMap(report => report.at.map(([c, k, i]) =>
  ({report: report.name, title: report.title, stage: report.stage, release: columnLabel(c), state: D.views.upstream.data.states[k][0], cell: cellName(i), reason: reasonOf(i)}))));
