// SPDX-License-Identifier: Apache-2.0
// The model's source: what each line became.
"use strict";

/// By "file:line": the values of the first and of the last graph that come from it, and the dispatches that these are in.
const sourceIndex = new Map();
function indexSources() {
  const entry = ({ file, number }) => {
    const key = `${file}:${number}`;
    if (!sourceIndex.has(key)) sourceIndex.set(key, { file, number, traced: [], values: [], commands: new Set() });
    return sourceIndex.get(key);
  };
  const valuesOf = (stage, visit) => {
    for (const def of stage.defs.values()) {
      const place = stage.placeOf.get(def.line);
      if (place) visit(entry(place), def);
    }
  };
  valuesOf(stages[0], (line, def) => line.traced.push(def.key));
  if (!lastGraph) return;
  const groupAt = new Map(lastGraph.groups.flatMap((group) => [...group.members].map((name) => [name, group])));
  valuesOf(lastGraph, (line, def) => {
    if (def.op === "group") return;
    line.values.push(def.key);
    for (const command of groupAt.get(def.key)?.place?.commands || []) line.commands.add(command);
  });
}
indexSources();

const timeOf = (line) => [...line.commands].reduce((sum, index) => sum + (commands[index].seconds || 0), 0);

function sourceView() {
  const canvas = element("div", { css: "canvas" }), rows = new Map(), most = Math.max(...[...sourceIndex.values()].map(timeOf));
  for (const [file, lines] of Object.entries(data.sources)) {
    const body = [];
    let before = 0;
    for (const number of Object.keys(lines).map(Number)) {
      if (before && number > before + 1) body.push(element("tr", { css: "gap" }, element("td", { colspan: 6 }, "⋯")));
      before = number;
      const line = sourceIndex.get(`${file}:${number}`), code = element("td", { css: "code" });
      code.innerHTML = colour(lines[number], () => "");
      const cells = line ? [line.traced.length, line.commands.size, timeOf(line) ? formatTime(timeOf(line)) : ""] : ["", "", ""];
      const row = element("tr", { css: line ? "has" : "", onclick: () => line && go({ sel: { kind: "source", index: `${file}:${number}` } }) },
        ...cells.map((text) => element("td", { css: "number" }, String(text || ""))),
        element("td", {}, line && timeOf(line) ? element("div", { css: "cost", style: `width:${Math.max(1, (70 * timeOf(line)) / most)}px` }) : null),
        element("td", { css: "number" }, String(number)), code);
      rows.set(`${file}:${number}`, row);
      body.push(row);
    }
    canvas.append(element("table", { css: "source" }, element("tr", {}, ...["nodes", "dispatches", measured ? "time" : ""].map((title) => element("th", { css: "number" }, title)), element("th"), element("th"), element("th", {}, file)), ...body));
  }
  if (!rows.size) canvas.append(element("p", { css: "empty" }, "The source files were not found when the page was made; --sources names their folder."));
  return {
    node: canvas,
    mark(selection) {
      const chosen = new Set(selection?.kind === "source" ? [selection.index] : []);
      if (selection?.kind === "command") for (const [key, line] of sourceIndex) if (line.commands.has(selection.index)) chosen.add(key);
      if (selection?.kind === "value") for (const [index, key] of lifeOf(selection.stage, selection.key)) {
        const place = stages[index].placeOf.get(stages[index].defs.get(key)?.line);
        if (place) chosen.add(`${place.file}:${place.number}`);
      }
      for (const [key, row] of rows) row.classList.toggle("on", chosen.has(key));
      rows.get([...chosen].find((key) => rows.has(key)))?.scrollIntoView({ block: "nearest" });
    },
  };
}

panels.source = ({ index }) => {
  const line = sourceIndex.get(index), list = [...line.commands].sort((a, b) => a - b);
  const values = (stage, keys) => element("div", { css: "life" }, ...keys.slice(0, 200).map((key) => element("button", { css: "mono", title: stage.lines[stage.defs.get(key).line].trim(),
    onclick: () => go({ stage: stage.index, view: "text", sel: { kind: "value", stage: stage.index, key } }) }, `${key} ${stage.defs.get(key).op}`)));
  return [element("h2", {}, index), ...sourceLines(line).slice(1),
    heading(`${line.traced.length} nodes of ${stages[0].name}`), values(stages[0], line.traced),
    heading(`${line.values.length} nodes of ${lastGraph.name}, gradients among them`), values(lastGraph, line.values),
    heading(list.length === 1 ? "1 dispatch" : `${list.length} dispatches`), ...list.map((i) => element("div", {}, commandLink(i), measured ? `  ${formatTime(commands[i].seconds)}` : ""))];
};
