const SVG = "http://www.w3.org/2000/svg";
const SMALLEST = 0.6;  /* How far a diagram shrinks before it scrolls. */
const BOX = { width: 170, height: 44, gapX: 26, gapY: 62, margin: 22 };
const LANES = [8, 13, 18];  /* How far beside the boxes edges pass them, in turn. */

function svgNode(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function cut(text, longest) {
  const chars = Array.from(text);
  return chars.length <= longest ? text : "…" + chars.slice(chars.length - longest + 1).join("");
}

function cutEnd(text, longest) {
  const chars = Array.from(text);
  return chars.length <= longest ? text : chars.slice(0, longest - 1).join("") + "…";
}

/* Draw the items of one side of a rewrite; `side` is "old" or "new". */
function drawDiagram(items, side, label, data, typeOf, onNode) {
  const { strings, states } = data;
  const columns = {};
  for (const item of items) columns[item[2]] = Math.max(columns[item[2]] || 0, item[3] + 1);
  const most = Math.max(1, ...Object.values(columns));
  const step = BOX.width + BOX.gapX;
  const width = most * step - BOX.gapX + 2 * BOX.margin;
  const layers = Math.max(0, ...items.map((item) => item[2])) + 1;
  const height = layers * (BOX.height + BOX.gapY) - BOX.gapY + 2 * BOX.margin;
  const x = (item) => BOX.margin + ((most - columns[item[2]]) / 2 + item[3]) * step;
  const y = (item) => BOX.margin + item[2] * (BOX.height + BOX.gapY);
  const svg = svgNode("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, style: `min-width: ${width * SMALLEST}px` });
  const made = new Map(), pills = new Map();
  for (const item of items) {
    if (item[0] === 3) pills.set(item[1], item);
    else for (const value of states[item[1]][4]) if (value >= 0) made.set(value, item);
  }
  const texts = [];
  let passed = 0;
  /* The boxes between two layers that a straight line would cross. */
  const between = (from, to, x1, y1, x2, y2) => items.filter((item) => {
    if (item[2] <= from[2] || item[2] >= to[2]) return false;
    const at = x1 + ((x2 - x1) * (y(item) + BOX.height / 2 - y1)) / (y2 - y1);
    return at > x(item) - LANES[0] && at < x(item) + BOX.width + LANES[0];
  });
  /* A path beside boxes, on the nearer side. */
  const beside = (boxes, x1, y1, x2, y2) => {
    const far = LANES[passed++ % LANES.length];
    const left = Math.min(...boxes.map(x)) - far, right = Math.max(...boxes.map(x)) + BOX.width + far;
    const lane = x1 + x2 - 2 * left < 2 * right - x1 - x2 ? left : right;
    const top = Math.min(...boxes.map(y)), end = Math.max(...boxes.map(y)) + BOX.height;
    const down = (top - y1) / 2, up = (y2 - end) / 2;
    return `M${x1},${y1} C${x1},${y1 + down} ${lane},${top - down} ${lane},${top} L${lane},${end} C${lane},${end + up} ${x2},${y2 - up} ${x2},${y2}`;
  };
  const connect = (from, to, value, place, count) => {
    const x1 = x(from) + BOX.width / 2, y1 = y(from) + BOX.height;
    const x2 = x(to) + (BOX.width * (place + 1)) / (count + 1), y2 = y(to);
    const bend = Math.max(18, Math.abs(y2 - y1) / 2);
    const boxes = between(from, to, x1, y1, x2, y2);
    const path = boxes.length ? beside(boxes, x1, y1, x2, y2) : `M${x1},${y1} C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}`;
    svg.append(svgNode("path", { class: "edge", d: path }));
    const isPill = from[0] === 3 || to[0] === 3;
    const type = typeOf(value);
    if (type && !isPill) {
      const shift = count > 1 ? 0.42 + (0.36 * place) / (count - 1) : 0.5;
      const fits = x2 + 4 + 6 * Math.min(type.length, 36) < width;
      const spot = boxes.length ? { x: fits ? x2 + 4 : x2 - 4, y: y2 - 6, "text-anchor": fits ? "start" : "end" }
        : { x: x1 + (x2 - x1) * shift, y: y1 + (y2 - y1) * shift + 4, "text-anchor": "middle" };
      const text = svgNode("text", { class: "type", ...spot }, cutEnd(type, 36));
      text.append(svgNode("title", {}, `${strings[value]}: ${type}`));
      texts.push(text);
    }
  };
  for (const item of items) {
    if (item[0] === 3) continue;
    const inputs = states[item[1]][3];
    inputs.forEach((value, place) => {
      if (value < 0) return;
      const from = made.get(value) || pills.get(value);
      if (from && from !== item) connect(from, item, value, place, inputs.length);
    });
    for (const value of states[item[1]][4]) if (pills.has(value)) connect(item, pills.get(value), value, 0, 1);
  }
  for (const item of items) {
    const group = svgNode("g", {});
    const kind = item[0] === 3 ? "pill" : `box k${item[0]}${item[0] === 2 ? " " + side : ""}`;
    const round = item[0] === 3 ? BOX.height / 2 : 5;
    group.append(svgNode("rect", { class: kind, x: x(item), y: y(item), width: BOX.width, height: BOX.height, rx: round }));
    const middle = { x: x(item) + BOX.width / 2, "text-anchor": "middle" };
    if (item[0] === 3) {
      const type = typeOf(item[1]);
      group.append(svgNode("text", { ...middle, y: y(item) + (type ? 18 : 27) }, cut(strings[item[1]], 22)));
      if (type) group.append(svgNode("text", { ...middle, class: "small", y: y(item) + 34 }, cutEnd(type, 27)));
      group.append(svgNode("title", {}, `${strings[item[1]]}${type ? ": " + type : ""}`));
    } else {
      const state = states[item[1]];
      group.append(svgNode("text", { ...middle, class: "op", y: y(item) + 18 }, cut(strings[state[1]], 24)));
      group.append(svgNode("text", { ...middle, class: "small", y: y(item) + 34 }, cut(strings[state[2]], 26)));
      group.append(svgNode("title", {}, `${strings[state[1]]} ${strings[state[2]]}`));
      group.setAttribute("class", "hit");
      group.addEventListener("click", () => onNode(state[0]));
    }
    svg.append(group);
  }
  svg.append(...texts);
  return svg;
}
