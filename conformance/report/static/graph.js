// The FX graph of a stage, drawn from its readable text: nodes in layers, each below all that it uses.
const GRAPH_NODES = 160;
const NODE_H = 34, NODE_GAP = 16, LAYER_GAP = 30;

function parseGraph(text) {
  const nodes = new Map();
  const add = (name, op, args, kind) => {
    const uses = [...new Set((args.match(/(?<![.\w])[A-Za-z_]\w*/g) ?? []).filter(word => nodes.has(word) && word !== name))];
    nodes.set(name, {name, op, uses, kind});
  };
  for (const line of text.slice(0, 400_000).split("\n")) {
    const code = line.replace(/^\s*/, "").replace(/;\s.*= None\s*$/, "").replace(/\s#.*$/, "");
    let found;
    if (code.startsWith("#") || code.startsWith("class ")) continue;
    if ((found = /^def \w+\((.*)\)/.exec(code)) || (found = /^def \w+\((.*)$/.exec(code))) {
      for (const one of splitArguments(found[1])) {
        const name = /^\s*([A-Za-z_]\w*)/.exec(one)?.[1];
        if (name && name !== "self") add(name, shapeOf(one), "", "in");
      }
    } else if ((found = /^%?([A-Za-z_]\w*)(?:\s*:\s*\[[^\]]*\])?\s*=\s*placeholder\b/.exec(code)) || (found = /^%?(\w+) .*= placeholder\[/.exec(code))) {
      add(found[1], "input", "", "in");
    } else if ((found = /^%(\w+)[^=]*=\s*(?:call_\w+|get_attr)\[target=([^\]]+)\]\((.*)\)/.exec(code))) {
      add(found[1], shortOp(found[2]), found[3].replaceAll("%", ""), "op");
    } else if ((found = /^([A-Za-z_]\w*)(?:\s*:\s*"[^"]*")?\s*=\s*([\w.]+)(\((.*)\)|\[(.*)\])?\s*(.*)$/.exec(code))) {
      const [, name, callee, call, args, index, rest] = found;
      const item = index !== undefined || (!call && nodes.has(callee)) ? "getitem" : null;
      if (args === undefined && index === undefined && !callee.includes(".") && !nodes.has(callee)) continue;
      add(name, item ?? (nodes.has(callee) && rest ? rest.trim().slice(0, 20) : shortOp(callee)), `${callee} ${args ?? index ?? ""} ${rest}`, callee.startsWith("self.") && !call ? "in" : "op");
    } else if ((found = /^return\s+(.*)$/.exec(code))) {
      add("output", "return", found[1].replaceAll("%", ""), "out");
    }
  }
  return [...nodes.values()];
}

function splitArguments(text) {
  const parts = [];
  let depth = 0, quoted = false, start = 0;
  for (let k = 0; k < text.length; k++) {
    if (text[k] === '"') quoted = !quoted;
    else if (!quoted && "([{".includes(text[k])) depth++;
    else if (!quoted && ")]}".includes(text[k])) depth--;
    else if (!quoted && !depth && text[k] === ",") { parts.push(text.slice(start, k)); start = k + 1; }
  }
  return [...parts, text.slice(start)];
}
const shapeOf = argument => (/"([^"]{1,40})"/.exec(argument) ?? [])[1] ?? "input";
const shortOp = target => target.replace(/^torch\.ops\./, "").replace(/\.default$/, "");

// Layers from top to bottom. An edge over several layers gets a bend in each of them, so that it runs beside nodes and not behind.
function layers(nodes) {
  const depth = new Map();
  for (const node of nodes) depth.set(node.name, node.uses.length ? 1 + Math.max(...node.uses.map(use => depth.get(use) ?? 0)) : 0);
  const readers = new Map();
  for (const node of nodes) for (const use of node.uses) readers.set(use, Math.min(readers.get(use) ?? Infinity, depth.get(node.name)));
  // An input stands just above its first reader, not at the top of everything.
  for (const node of nodes) if (!node.uses.length && readers.has(node.name)) depth.set(node.name, readers.get(node.name) - 1);
  const found = [], edges = [];
  const put = (place, layer) => { (found[layer] ??= []).push(place); return place; };
  const places = new Map(nodes.map(node => [node.name, put({node, above: [], w: nodeWidth(node)}, depth.get(node.name))]));
  for (const node of nodes) for (const use of node.uses) {
    const path = [places.get(use)];
    for (let layer = depth.get(use) + 1; layer < depth.get(node.name); layer++) path.push(put({node: null, above: [path.at(-1)], w: 4}, layer));
    path.push(places.get(node.name));
    places.get(node.name).above.push(path.at(-2));
    edges.push(path);
  }
  const dense = found.filter(Boolean);
  order(dense);
  return {dense, edges};
}

// Each layer by the mean place of what is above it, then by what is below it, a few times over.
function order(dense) {
  const number = () => dense.forEach(layer => layer.forEach((place, k) => { place.at = k - (layer.length - 1) / 2; }));
  const mean = (list, place) => list.length ? list.reduce((sum, other) => sum + other.at, 0) / list.length : place.at;
  const below = new Map();
  for (const layer of dense) for (const place of layer) for (const above of place.above) below.set(above, [...below.get(above) ?? [], place]);
  number();
  for (let sweep = 0; sweep < 6; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? dense : [...dense].reverse()) {
      const key = new Map(layer.map(place => [place, mean(down ? place.above : below.get(place) ?? [], place)]));
      layer.sort((a, b) => key.get(a) - key.get(b));
      layer.forEach((place, k) => { place.at = k - (layer.length - 1) / 2; });
    }
  }
}

function drawGraph(text) {
  const nodes = parseGraph(text);
  if (!nodes.some(node => node.kind === "op")) return null;
  if (nodes.length > GRAPH_NODES) return h("p", {class: "note"}, `${nodes.length} nodes: too many to draw; the text is complete.`);
  const {dense, edges} = layers(nodes);
  const sizes = dense.map(layer => layer.reduce((sum, place) => sum + place.w + NODE_GAP, -NODE_GAP));
  const width = Math.max(...sizes) + 24, height = dense.length * (NODE_H + LAYER_GAP);
  dense.forEach((layer, depth) => {
    let left = (width - sizes[depth]) / 2;
    for (const place of layer) { place.x = left; place.y = depth * (NODE_H + LAYER_GAP) + 8; left += place.w + NODE_GAP; }
  });
  const boxes = dense.flat().filter(place => place.node).map(({node, x, y, w}) =>
    s("g", {class: "node " + node.kind}, s("title", {}, `${node.name} = ${node.op}`), s("rect", {x, y, width: w, height: NODE_H, rx: 6}),
      s("text", {x: x + w / 2, y: y + 15, "text-anchor": "middle"}, clip(node.op)), s("text", {class: "sub", x: x + w / 2, y: y + 27, "text-anchor": "middle"}, clip(node.name))));
  return s("svg", {class: "fx", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Graph of ${nodes.length} nodes`, "data-nodes": nodes.length},
    edges.map(path => s("path", {class: "edge", d: edgePath(path)})), boxes);
}

function edgePath(path) {
  const middle = place => place.x + place.w / 2;
  let d = `M${middle(path[0])} ${path[0].y + NODE_H}`;
  for (let k = 1; k < path.length; k++) {
    const x0 = middle(path[k - 1]), y0 = path[k - 1].y + NODE_H, x1 = middle(path[k]), y1 = path[k].y, bend = (y1 - y0) / 2;
    d += ` C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1}`;
    if (!path[k].node) d += ` V${y1 + NODE_H}`;
  }
  return d;
}
const nodeWidth = node => Math.min(240, Math.max(70, 16 + 7.1 * Math.max(clip(node.op).length, clip(node.name).length * .88)));
const clip = text => text.length > 31 ? text.slice(0, 30) + "…" : text;
