// SPDX-License-Identifier: Apache-2.0
// The panel: all that is known of a value, a buffer, a dispatch or a kernel. A selection is {kind, ...} as main.js keeps it in the address.
"use strict";

const heading = (text) => element("h3", {}, text);
const link = (text, to) => element("span", { css: "link mono", onclick: () => go(to) }, text);
const facts = (rows) => element("dl", {}, ...rows.filter(([, value]) => value !== null && value !== undefined && value !== "")
  .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, ...(Array.isArray(value) ? value : [value]))]));
const spaced = (nodes) => nodes.flatMap((node, i) => (i ? [" ", node] : [node]));

function sourceLines({ file, number }) {
  const text = data.sources[file];
  const title = link(`${file}:${number}`, { view: "source", sel: { kind: "source", index: `${file}:${number}` } });
  if (!text) return [title];
  const lines = [];
  for (let line = number - 2; line <= number + 2; ++line) {
    if (text[line] === undefined) continue;
    lines.push(element("span", { css: line === number ? "here" : "" }, `${String(line).padStart(4)}  ${text[line]}`), "\n");
  }
  return [title, element("pre", {}, ...lines)];
}

/// The texts of a kernel under tabs; a click on a name marks its other places.
function kernelTabs(index, height) {
  const kernel = data.kernels[index], node = element("div");
  const kinds = [["kir", "kernel IR"], ["wgsl", "WGSL"], ["spvasm", "SPIR-V"]].filter(([ending]) => kernel[ending]);
  const show = (ending) => {
    state.tab = ending;
    const pre = element("pre", { css: "kernel row", style: height ? `max-height:${height}` : undefined });
    pre.className = "kernel";
    pre.innerHTML = kernel[ending].split("\n").map((line) => colour(line, () => "n")).join("\n");
    node.replaceChildren(element("div", { css: "tabs" }, ...kinds.map(([other, title]) =>
      element("button", { css: other === ending ? "on" : "", onclick: () => show(other) }, title))), pre);
  };
  show(kinds.some(([ending]) => ending === state.tab) ? state.tab : "wgsl");
  return node;
}

const bufferLink = (index) => link("%" + buffers[index].name, { sel: { kind: "buffer", index } });
const commandLink = (index) => link(`${index} ${commands[index].label}`, { sel: { kind: "command", index } });

function arenaText(buffer) {
  const arena = data.arenas[buffer.arena];
  return `@${arena?.name} bytes ${buffer.offset}..${buffer.offset + buffer.size} of ${arena?.size} (${formatBytes(buffer.size)})`;
}

/// The kernel that a line of the last program belongs to; in earlier ones the kernel's name.
function kernelLink(stage, def) {
  const name = stage.scopes[def?.line ?? 0].kernel.slice(0, -1), index = data.kernels.findIndex((kernel) => "@" + kernel.name === name);
  return stage === lastStage && index >= 0 ? link(name, { sel: { kind: "kernel", index } }) : name;
}

/// What dispatches have in common in every panel: kernel, time, texts.
function commandFacts(index) {
  const command = commands[index], kernel = data.kernels[command.kernel];
  return [
    ["dispatch", commandLink(index)],
    ["level", `${command.level} of 0..${data.levels - 1}`],
    ["kernel", kernel && link("@" + kernel.name, { sel: { kind: "kernel", index: command.kernel } })],
    ["workgroups", command.groups?.join(" × ")],
    ["work", command.bytes !== undefined ? `${formatBytes(command.bytes)}${command.operations === undefined ? "" : `, ${command.operations.toLocaleString("en")} operations`}` : ""],
    ["takes at least", command.least_seconds !== undefined ? formatTime(command.least_seconds) : ""],
    ["time", command.seconds !== undefined ? formatTime(command.seconds) : ""],
  ];
}

function valuePanel({ stage: index, key }) {
  const stage = stages[index], def = stage.defs.get(key), life = lifeOf(index, key), group = groupOf(life);
  const name = def?.name ?? key;
  const buffer = buffers.find((b) => "%" + b.name === life.find(([at]) => stages[at].form === "program")?.[1]);
  const placed = group?.results.indexOf(life.find(([at]) => at === lastGraph.index)?.[1]);
  const home = buffer ?? buffers[group?.place?.buffers[placed >= 0 ? placed : 0]];
  const place = life.map(([at, other]) => stages[at].placeOf.get(stages[at].defs.get(other)?.line)).find(Boolean);
  const uses = (stage.uses.get(key) || []).filter((line) => line !== def?.line);
  const nodes = [element("h2", {}, name), element("div", { css: "mono" }, def ? stage.lines[def.line].trim() : "not defined in this stage")];
  nodes.push(facts([["op", def?.op], ["type", def?.type], ["in", kernelLink(stage, def)],
    ["group", group && link(`group ${group.index} (${group.results.join(", ")})`, { stage: lastGraph.index, view: "text", sel: { kind: "value", stage: lastGraph.index, key: group.results[0] } })],
    ["operands", def && spaced(def.operands.map((operand) => link(operand, { sel: { kind: "value", stage: index, key: operand } })))]]));
  if (place) nodes.push(heading("source"), ...sourceLines(place));
  nodes.push(heading("lives on"), element("div", { css: "life" }, ...life.map(([at, other]) =>
    element("button", { css: "mono", title: stages[at].name, onclick: () => go({ stage: at, view: "text", sel: { kind: "value", stage: at, key: other } }) }, `${at} ${stages[at].name} ${other}`))));
  const end = stages[life.at(-1)[0]];
  if (end.form === "graph" && end !== lastGraph) nodes.push(element("div", {}, `gone after ${stages[end.index + 1].name}`));
  nodes.push(heading(uses.length === 1 ? "1 use" : `${uses.length} uses`), ...uses.slice(0, 40).map((line) =>
    element("div", {}, element("span", { css: "link mono", onclick: () => go({ stage: index, view: "text", line }) }, `${line + 1}: ${stage.lines[line].trim().slice(0, 90)}`))));
  if (home) nodes.push(heading("memory"), facts([["buffer", bufferLink(home.index)], ["arena", arenaText(home)], ["levels", `${home.first}..${home.last}`]]));
  for (const command of group?.place?.commands || []) nodes.push(heading("became"), facts(commandFacts(command)), commands[command].kernel !== null ? kernelTabs(commands[command].kernel) : null);
  return nodes;
}

function bufferPanel({ index }) {
  const buffer = buffers[index];
  const values = (lastGraph?.groups || []).flatMap((group) => group.results.filter((_, i) => group.place?.buffers[i] === index));
  return [element("h2", {}, "%" + buffer.name),
    facts([["type", buffer.type], ["role", buffer.role], ["arena", arenaText(buffer)], ["levels", buffer.last < 0 ? "not used" : `${buffer.first}..${buffer.last}`],
      ["values", spaced(values.map((name) => link(name, { stage: lastGraph.index, view: "text", sel: { kind: "value", stage: lastGraph.index, key: name } })))],
      ["text", link("declaration", { stage: lastStage.index, view: "text", sel: { kind: "value", stage: lastStage.index, key: "%" + buffer.name } })]]),
    heading(buffer.inPlace ? "written, in the bytes of an operand, by" : "written by"), ...buffer.writers.map((i) => element("div", {}, commandLink(i))),
    heading("read by"), ...buffer.readers.map((i) => element("div", {}, commandLink(i)))];
}

function commandPanel({ index }) {
  const command = commands[index];
  const groups = (lastGraph?.groups || []).filter((group) => group.place?.commands.includes(index));
  const places = new Map();
  for (const group of groups) {
    for (let line = group.line; line <= group.end; ++line) {
      const place = lastGraph.placeOf.get(line);
      if (place) places.set(`${place.file}:${place.number}`, place);
    }
  }
  const range = (access) => element("div", {}, bufferLink(access.buffer), ` bytes ${access.offset}..${access.offset + access.size} (${formatBytes(access.size)})`);
  return [element("h2", {}, command.label), facts(commandFacts(index).slice(1)),
    facts([["groups", spaced(groups.map((g) => link(g.results.join(", "), { stage: lastGraph.index, view: "text", sel: { kind: "value", stage: lastGraph.index, key: g.results[0] } })))]]),
    heading("writes"), ...command.writes.map(range), heading("reads"), ...command.reads.map(range),
    ...(places.size ? [heading("source")] : []),
    ...[...places.values()].slice(0, 12).map((place) => element("div", { css: "mono" }, sourceLines(place)[0], "  " + (data.sources[place.file]?.[place.number] || "").trim())),
    ...(command.kernel !== null ? [heading("kernel"), kernelTabs(command.kernel)] : [])];
}

function kernelPanel({ index }) {
  const used = commands.filter((command) => command.kernel === index), text = data.kernels[index].wgsl;
  return [element("h2", {}, "@" + data.kernels[index].name),
    facts([["lines", `${text.split("\n").length} of WGSL`], ["time", measured ? formatTime(used.reduce((sum, c) => sum + c.seconds, 0)) : ""]]),
    heading(used.length === 1 ? "1 dispatch" : `${used.length} dispatches`), ...used.map((c) => element("div", {}, commandLink(c.index))), heading("text"), kernelTabs(index, "none")];
}

const panels = { value: valuePanel, buffer: bufferPanel, command: commandPanel, kernel: kernelPanel };

function drawPanel(selection) {
  const panel = document.getElementById("panel");
  panel.hidden = !selection;
  if (!selection) return panel.replaceChildren();
  panel.replaceChildren(element("button", { css: "close", title: "Esc", onclick: () => go({ sel: null }) }, "×"), ...panels[selection.kind](selection).filter(Boolean));
  panel.scrollTop = 0;
  for (const pre of panel.querySelectorAll("pre.kernel")) pre.addEventListener("click", (event) => {
    const name = event.target.dataset.name;
    for (const span of pre.querySelectorAll("[data-name]")) span.style.background = name && span.dataset.name === name ? "var(--mark)" : "";
  });
}
