// SPDX-License-Identifier: Apache-2.0
// The plan as pictures: dispatches in their levels, and buffers in their arena over time.
"use strict";

const BOX = { width: 196, height: 56, gapX: 66, gapY: 16, left: 24, top: 44 };

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name === "css" ? "class" : name, value);
  }
  node.append(...children);
  return node;
}
const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

function showTip(event, text) {
  const tip = document.getElementById("tip");
  tip.hidden = false;
  tip.textContent = text;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8) + "px";
}
const hideTip = () => (document.getElementById("tip").hidden = true);
const tipped = (text) => ({ onmousemove: (event) => showTip(event, text), onmouseleave: hideTip });

/// Rows of each level's boxes: near to those whose results they read, so that few edges cross.
function placeBoxes() {
  const at = new Map();
  for (let level = 0; level < data.levels; ++level) {
    const here = commands.filter((command) => command.level === level).map((command) => {
      const before = edges.filter((e) => e.to === command.index).map((e) => at.get(e.from)?.row ?? 0);
      return { command, wish: before.length ? before.reduce((a, b) => a + b) / before.length : 0 };
    });
    here.sort((a, b) => a.wish - b.wish || a.command.index - b.command.index);
    here.forEach(({ command }, row) => at.set(command.index, { x: BOX.left + level * (BOX.width + BOX.gapX), y: BOX.top + row * (BOX.height + BOX.gapY), row }));
  }
  return at;
}

/// A lane below the boxes for what is read more than one level later; one for all readers of a buffer, shared by those that do not meet.
function laneOfLongEdges() {
  const spans = new Map(), ends = [], lanes = new Map();
  for (const edge of edges) {
    const from = commands[edge.from].level, to = commands[edge.to].level, key = `${edge.from} ${edge.buffer}`;
    if (to - from > 1) spans.set(key, { from, to: Math.max(to, spans.get(key)?.to ?? 0) });
  }
  for (const [key, span] of [...spans].sort((a, b) => b[1].to - b[1].from - (a[1].to - a[1].from))) {
    let lane = ends.findIndex((taken) => taken.every((other) => other.to <= span.from || span.to <= other.from));
    if (lane < 0) lane = ends.push([]) - 1;
    ends[lane].push(span);
    lanes.set(key, lane);
  }
  return { lanes, count: ends.length };
}

function dispatchView() {
  const at = placeBoxes(), rows = Math.max(0, ...[...at.values()].map((p) => p.row)) + 1, { lanes, count } = laneOfLongEdges();
  const bottom = BOX.top + rows * (BOX.height + BOX.gapY), height = bottom + count * 6 + 20;
  const width = BOX.left * 2 + data.levels * (BOX.width + BOX.gapX) - BOX.gapX;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}` }), boxes = new Map(), curves = [];
  for (let level = 0; level < data.levels; ++level) {
    const x = BOX.left + level * (BOX.width + BOX.gapX) - 12;
    picture.append(svg("rect", { css: "level", x, y: 8, width: BOX.width + 24, height: bottom - 12, rx: 8 }), svg("text", { css: "axis", x: x + 12, y: 28 }, `level ${level}`));
  }
  for (const edge of edges) {
    const from = at.get(edge.from), to = at.get(edge.to), buffer = buffers[edge.buffer], lane = lanes.get(`${edge.from} ${edge.buffer}`);
    const x1 = from.x + BOX.width, y1 = from.y + BOX.height / 2, x2 = to.x, y2 = to.y + BOX.height / 2, bend = BOX.gapX / 2;
    const long = commands[edge.to].level - commands[edge.from].level > 1, below = bottom + 8 + (lane ?? 0) * 6;
    const d = long ? `M${x1} ${y1}C${x1 + bend} ${y1} ${x1 + bend / 2} ${below} ${x1 + 2 * bend} ${below}L${x2 - 2 * bend} ${below}C${x2 - bend / 2} ${below} ${x2 - bend} ${y2} ${x2} ${y2}`
      : `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
    const curve = svg("path", { css: "edge", d, "stroke-width": Math.max(1, Math.min(3, Math.log2(buffer.size / 4) / 6)), ...tipped(`%${buffer.name}: ${buffer.type}, ${formatBytes(buffer.size)}`) });
    curves.push({ edge, curve });
    picture.append(curve);
  }
  const most = Math.max(...commands.map((c) => c.seconds || 0));
  for (const command of commands) {
    const { x, y } = at.get(command.index), kernel = data.kernels[command.kernel]?.name ?? (command.label.startsWith("copy") ? "copy" : "fill");
    const box = svg("rect", { css: "box", x, y, width: BOX.width, height: BOX.height, rx: 7, onclick: () => go({ sel: { kind: "command", index: command.index } }),
      ...tipped([command.label, kernel, `workgroups ${command.groups?.join(" × ") ?? "none"}`, measured ? formatTime(command.seconds) : ""].join("\n")) });
    boxes.set(command.index, box);
    picture.append(box);
    if (measured) picture.append(svg("rect", { css: "bar-time", x: x + 1, y: y + BOX.height - 7, width: Math.max(1, (BOX.width - 2) * (command.seconds / most)), height: 6, rx: 3 }));
    picture.append(svg("text", { css: "label", x: x + 10, y: y + 17 }, cut(command.label, 22)), svg("text", { css: "sub", x: x + 10, y: y + 31 }, cut(kernel, 30)),
      svg("text", { css: "sub", x: x + 10, y: y + 44 }, (command.groups ? command.groups.join("×") + " workgroups" : "")),
      svg("text", { css: "sub", x: x + BOX.width - 10, y: y + 44, "text-anchor": "end" }, measured ? formatTime(command.seconds) : ""));
  }
  const canvas = element("div", { css: "canvas" }, picture);
  const zoom = (scale) => {
    state.zoom = scale;
    picture.setAttribute("width", width * scale);
    picture.setAttribute("height", height * scale);
  };
  zoom(state.zoom);
  return {
    node: canvas, zoom,
    mark(selection) {
      const index = selection?.kind === "command" ? selection.index : -1, buffer = selection?.kind === "buffer" ? selection.index : -1;
      for (const { edge, curve } of curves) curve.classList.toggle("near", edge.from === index || edge.to === index || edge.buffer === buffer);
      for (const [i, box] of boxes) {
        box.classList.toggle("on", i === index);
        box.classList.toggle("near", edges.some((e) => (e.from === index && e.to === i) || (e.to === index && e.from === i)) || commands[i].accesses.some((a) => a.buffer === buffer));
      }
      const place = at.get(index);
      if (!place) return;
      const left = place.x * state.zoom, right = (place.x + BOX.width) * state.zoom;
      if (left < canvas.scrollLeft || right > canvas.scrollLeft + canvas.clientWidth) canvas.scrollLeft = left - canvas.clientWidth / 3;
    },
  };
}

const MAP = { left: 92, top: 28, height: 430, right: 24, curve: 84 };

/// Bytes of an arena's buffers that live in each level.
function aliveBytes(own) {
  return Array.from({ length: data.levels }, (_, level) => own.filter((b) => b.first <= level && level <= b.last).reduce((sum, b) => sum + b.size, 0));
}

function memoryView() {
  const workspace = data.arenas.findIndex((arena) => arena.role === "workspace"), arena = data.arenas[workspace];
  const canvas = element("div", { css: "canvas" }), rects = new Map();
  if (arena && data.levels) {
    const own = buffers.filter((b) => b.arena === workspace && b.last >= 0), alive = aliveBytes(own), peak = Math.max(...alive);
    const room = document.getElementById("main").clientWidth - MAP.left - MAP.right - 16;
    const column = Math.max(9, Math.min(110, room / data.levels)), width = MAP.left + column * data.levels + MAP.right;
    const y = (bytes) => MAP.top + MAP.height * (bytes / arena.size), x = (level) => MAP.left + column * level, base = MAP.top + MAP.height + MAP.curve + 30;
    const picture = svg("svg", { width, height: base + 26 });
    const unit = 2 ** Math.ceil(Math.log2(arena.size / 8));
    for (let bytes = 0; bytes <= arena.size; bytes += unit) {
      picture.append(svg("line", { css: "grid", x1: MAP.left, x2: width - MAP.right, y1: y(bytes), y2: y(bytes) }), svg("text", { css: "axis", x: MAP.left - 8, y: y(bytes) + 4, "text-anchor": "end" }, formatBytes(bytes)));
    }
    const every = Math.ceil(34 / column);
    for (let level = 0; level < data.levels; level += every) {
      picture.append(svg("text", { css: "axis", x: x(level) + column / 2, y: MAP.top - 10, "text-anchor": "middle" }, String(level)), svg("text", { css: "axis", x: x(level) + column / 2, y: base + 16, "text-anchor": "middle" }, String(level)));
    }
    picture.append(svg("text", { css: "axis", x: 8, y: MAP.top - 10 }, "offset \\ level"), svg("text", { css: "axis", x: MAP.left - 8, y: base - MAP.curve + 4, "text-anchor": "end" }, formatBytes(peak)), svg("text", { css: "axis", x: MAP.left - 8, y: base, "text-anchor": "end" }, "alive"));
    own.forEach((buffer, i) => {
      const w = column * (buffer.last - buffer.first + 1), h = Math.max(1.5, y(buffer.offset + buffer.size) - y(buffer.offset));
      const rect = svg("rect", { css: "buffer", x: x(buffer.first), y: y(buffer.offset), width: w, height: h, rx: 3, fill: `hsl(${(i * 67) % 360} 52% 58%)`, onclick: () => go({ sel: { kind: "buffer", index: buffer.index } }),
        ...tipped(`%${buffer.name}: ${buffer.type}\n${formatBytes(buffer.size)} at ${buffer.offset}, levels ${buffer.first}..${buffer.last}`) });
      rects.set(buffer.index, rect);
      picture.append(rect);
      if (w > 44 && h > 13) picture.append(svg("text", { x: x(buffer.first) + 6, y: y(buffer.offset) + Math.min(15, h / 2 + 4), style: "fill:#10131a" }, cut(`%${buffer.name} ${buffer.type}`, Math.floor((w - 12) / 6.2))));
    });
    alive.forEach((bytes, level) => picture.append(svg("rect", { css: "alive", x: x(level), y: base - MAP.curve * (bytes / peak), width: column - 1, height: MAP.curve * (bytes / peak), ...tipped(`level ${level}: ${formatBytes(bytes)} alive`) })));
    canvas.append(picture);
  }
  const rows = data.arenas.map((other, index) => element("tr", {}, element("td", { css: "mono" }, "@" + other.name), element("td", {}, other.role), element("td", {}, formatBytes(other.size)),
    element("td", {}, ...(index === workspace ? [`${buffers.filter((b) => b.arena === index).length} buffers, above`] : spaced(buffers.filter((b) => b.arena === index).map((b) => bufferLink(b.index)))))));
  canvas.append(element("table", { css: "arenas" }, element("tr", {}, ...["arena", "role", "size", "buffers"].map((title) => element("th", {}, title))), ...rows));
  return {
    node: canvas,
    mark(selection) {
      const touched = selection?.kind === "command" ? commands[selection.index].accesses.map((a) => a.buffer) : [];
      for (const [index, rect] of rects) rect.classList.toggle("on", (selection?.kind === "buffer" && selection.index === index) || touched.includes(index));
    },
  };
}
