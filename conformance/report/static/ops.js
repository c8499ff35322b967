const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const made = (tag, text = "", kind = "") => Object.assign(document.createElement(tag), { textContent: text, className: kind });

// Columns of one compiler, target and dtype that differ in version only.
const families = new Map();
data.columns.forEach(([backend, target, , dtype], index) => {
  const key = [backend, target, dtype].join(" ");
  families.set(key, [...(families.get(key) ?? []), index]);
});
const moved = (cells) => [...families.values()].some((family) => {
  const known = family.filter((index) => index in cells).map((index) => cells[index].is + cells[index].forms);
  return new Set(known).size > 1;
});

const head = made("tr");
head.append(made("th"));
for (const [backend, target, version, dtype] of data.columns) {
  const cell = made("th", `${dtype} ${version}`, "dtype");
  cell.title = `${backend} ${version}, ${target}, ${dtype}`;
  head.append(cell);
}
byId("table").tHead.append(head);
byId("legend").textContent = Object.entries(data.words).map(([word, [sign, meaning]]) => `${sign} ${word}: ${meaning}`).join(" · ");

function open(row, column, entry) {
  if (row.nextSibling?.className === "more") row.nextSibling.remove();
  const more = made("tr", "", "more");
  const cell = made("td", [`${column.join(" ")}: ${entry.is}`, ...entry.findings].join("\n"));
  cell.colSpan = data.columns.length + 1;
  more.append(cell);
  row.after(more);
}

function draw() {
  const words = byId("q").value.toLowerCase().split(/\s+/).filter(Boolean);
  const body = made("tbody");
  let count = 0;
  for (const [name, cells] of Object.entries(data.operators)) {
    const text = (name + " " + Object.values(cells).flatMap((one) => one.findings).join(" ")).toLowerCase();
    const wrong = Object.values(cells).some((one) => data.words[one.is][3]);
    if (!words.every((word) => text.includes(word)) || (byId("bad").checked && !wrong) || (byId("moved").checked && !moved(cells))) continue;
    const row = made("tr");
    row.append(made("th", name));
    data.columns.forEach((column, index) => {
      const entry = cells[index];
      const cell = made("td", entry ? data.words[entry.is][0] : "", entry ? "v-" + data.words[entry.is][2] : "");
      if (entry) {
        cell.title = `${name} ${column[3]}: ${entry.is}${entry.forms.length ? " (" + entry.forms.join(", ") + ")" : ""}`;
        if (entry.findings.length) {
          cell.tabIndex = 0;
          cell.onclick = () => open(row, column, entry);
          cell.onkeydown = (event) => event.key === "Enter" && open(row, column, entry);
        }
      }
      row.append(cell);
    });
    body.append(row);
    count += 1;
  }
  byId("table").tBodies[0].replaceWith(body);
  byId("count").textContent = `${count} of ${Object.keys(data.operators).length} operators`;
}

for (const id of ["q", "bad", "moved"]) byId(id).addEventListener("input", draw);
draw();
