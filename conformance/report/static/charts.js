// Small pictures, drawn as SVG.
const seconds = millis => millis >= 100_000 ? Math.round(millis / 1000) + " s" : millis >= 1000 ? (millis / 1000).toFixed(1) + " s" : Math.round(millis) + " ms";

// points: [[label, value or null]…], in the order of versions. A point that differs from the one before it is marked.
function sparkline(title, points, format = String, marked = true) {
  const W = 196, H = 46, top = 8, bottom = 34, values = points.map(point => point[1]).filter(value => value != null);
  if (!values.length) return h("div", {class: "plot"}, title, ": none");
  const low = Math.min(0, ...values), high = Math.max(...values, low + 1);
  const x = k => points.length > 1 ? 8 + k * (W - 68) / (points.length - 1) : 8, y = value => bottom - (value - low) / (high - low) * (bottom - top);
  let path = "", before = null;
  const dots = points.flatMap(([label, value], k) => {
    if (value == null) return [];
    path += (path ? "L" : "M") + x(k) + " " + y(value);
    const changed = marked && before != null && before !== value;
    before = value;
    return s("circle", {class: "dot" + (changed ? " changed" : ""), cx: x(k), cy: y(value), r: changed ? 3.2 : 2.2}, s("title", {}, `${label}: ${format(value)}`));
  });
  const label = `${title}: ${points.map(([name, value]) => `${name} ${value == null ? "none" : format(value)}`).join(", ")}`;
  const change = values[0] !== values.at(-1) ? ` ${format(values[0])} → ${format(values.at(-1))}` : "";
  return h("div", {class: "plot"}, h("span", {}, title, h("b", {}, change)), s("svg", {width: W, height: H, viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label}, s("line", {class: "axis", x1: 4, x2: W - 60, y1: bottom + 3, y2: bottom + 3}),
    s("path", {class: "line", d: path}), dots, s("text", {x: W - 54, y: y(values.at(-1)) + 4, "font-size": 12}, format(values.at(-1)))));
}

// parts: [[label, millis]…] in order; each bar starts where the one before it ends.
function waterfall(parts, {width = 520, scale = 0, labels = 120} = {}) {
  const all = parts.reduce((sum, part) => sum + part[1], 0), full = Math.max(scale, all, 1), room = width - labels - 70;
  let at = 0;
  const rows = parts.map(([label, millis], k) => {
    const x = labels + at / full * room, w = Math.max(millis / full * room, millis ? 1.5 : 0), y = k * 18 + 4;
    at += millis;
    return [s("text", {x: labels - 10, y: y + 10, "text-anchor": "end", "font-size": 12, class: "soft"}, label),
      s("rect", {class: "bar", x, y, width: w, height: 12, rx: 2}, s("title", {}, `${label}: ${seconds(millis)}`)),
      s("text", {x: x + w + 6, y: y + 10, "font-size": 11, class: "soft"}, millis ? seconds(millis) : "")];
  });
  const label = "Time by stage: " + parts.map(([name, millis]) => `${name} ${seconds(millis)}`).join(", ");
  return s("svg", {class: "waterfall", width, height: parts.length * 18 + 6, viewBox: `0 0 ${width} ${parts.length * 18 + 6}`, role: "img", "aria-label": label}, rows.flat());
}

// Points over the versions of one series, for one micrograph. What another revision of the suite recorded is no point of the line.
function plotsOf(row, columns) {
  const point = (stage, table) => columns.map(c => {
    const i = D.cellAt(row, c, D.stages.indexOf(stage));
    return [versionOf(c), D.stages.includes(stage) && i >= 0 && !D.apart.has(i) ? D[table].get(i) ?? null : null];
  });
  const time = columns.map(c => [versionOf(c), D.stages.some((_, m) => D.apart.has(D.cellAt(row, c, m))) ? null : compileMillis(row, c)]);
  return {kernels: point("fusion", "kernels"), matches: point("postgrad", "matches"), time};
}
function compileMillis(row, column) {
  let sum = 0, seen = false;
  for (let m = 0; m < D.stages.length; m++) {
    const i = D.cellAt(row, column, m);
    if (i >= 0) { sum += D.millis[i]; seen = true; }
  }
  return seen ? sum : null;
}
const moves = points => new Set(points.map(point => point[1]).filter(value => value != null)).size > 1;
