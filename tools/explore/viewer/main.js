// SPDX-License-Identifier: Apache-2.0
// The state of the page, which is in its address: stage, view and selection. Side bar, search and keys change it with go().
"use strict";

const VIEWS = [["text", "Text"], ["diff", "Diff"], ["dispatches", "Dispatches"], ["memory", "Memory"], ["source", "Source"]];
const state = { stage: stages.length > 1 ? 1 : 0, view: "diff", sel: null, line: undefined, tab: "wgsl", loose: true, zoom: 1 };
let shown = { key: "", view: null };

const selectionText = (sel) => (!sel ? "" : sel.kind === "value" ? `value:${sel.stage}:${sel.key}` : `${sel.kind}:${sel.index}`);
function readSelection(text) {
  const value = /^value:(\d+):(.+)$/.exec(text || "");
  if (value) return stages[value[1]]?.isName(value[2]) ? { kind: "value", stage: Number(value[1]), key: value[2] } : null;
  if (text?.startsWith("source:")) return sourceIndex.has(text.slice(7)) ? { kind: "source", index: text.slice(7) } : null;
  const other = /^(buffer|command|kernel):(\d+)$/.exec(text || "");
  const list = { buffer: buffers, command: commands, kernel: data.kernels }[other?.[1]];
  return list?.[other[2]] ? { kind: other[1], index: Number(other[2]) } : null;
}

function readAddress(text) {
  const words = new URLSearchParams(text);
  const stage = stages.findIndex((s) => s.name === words.get("stage"));
  if (stage >= 0) state.stage = stage;
  if (VIEWS.some(([name]) => name === words.get("view"))) state.view = words.get("view");
  state.sel = readSelection(words.get("sel"));
  state.line = words.get("line") ? Number(words.get("line")) - 1 : undefined;
}
function addressOf() {
  const words = new URLSearchParams({ stage: stages[state.stage].name, view: state.view });
  if (state.sel) words.set("sel", selectionText(state.sel));
  if (state.line !== undefined) words.set("line", state.line + 1);
  return words.toString();
}

/// Changes the state and shows it. A selection lives in a stage, so a change of the stage alone follows it there or drops it.
function go(change) {
  if (change.stage !== undefined && change.sel === undefined && state.sel?.kind === "value") {
    const there = lifeOf(state.sel.stage, state.sel.key).find(([index]) => index === change.stage);
    if (there) change.sel = { kind: "value", stage: there[0], key: there[1] };
  }
  Object.assign(state, { line: undefined }, change);
  const address = addressOf();
  if (location.hash.slice(1) !== address) history.pushState(null, "", "#" + address);
  draw();
}

/// Another stage, as text or diff: the pictures are of the last one.
function goToStage(index) {
  if (stages[index]) go({ stage: index, view: state.view === "text" ? "text" : "diff" });
}

function select(stage, line, name) {
  if (!name) return;
  const key = stage.key(name, line);
  const kernel = data.kernels.findIndex((k) => "@" + k.name === key);
  if (kernel >= 0 && stage === lastStage) return go({ sel: { kind: "kernel", index: kernel } });
  go({ sel: { kind: "value", stage: stage.index, key } });
}

function drawSides() {
  const list = stages.map((stage) => element("div", { css: `stage ${stage.index === state.stage ? "on" : ""} ${stage.changed ? "" : "same"}`, onclick: () => goToStage(stage.index) },
    element("span", { css: "no" }, String(stage.index)), element("b", {}, stage.name), element("span", { css: "time" }, stage.seconds !== undefined ? formatTime(stage.seconds) : ""),
    element("small", {}, `${stage.size} ${stage.form === "graph" ? "nodes" : "commands"}${stage.changed ? "" : " (unchanged)"}`)));
  const keys = element("footer", {}, ...["j", "k"].flatMap((k) => [element("kbd", {}, k), " "]), "stage  ", element("kbd", {}, "/"), " search  ", element("kbd", {}, "Esc"), " close", element("br"), element("kbd", {}, "1"), "-", element("kbd", {}, "5"), " view");
  document.getElementById("stages").replaceChildren(...list, keys);
  document.querySelector(".stage.on").scrollIntoView({ block: "nearest" });
  document.getElementById("views").replaceChildren(...VIEWS.map(([name, title]) => element("button", { css: name === state.view ? "on" : "", onclick: () => go({ view: name }) }, title)));
}

/// The bar above a view: what is seen.
function barOf(view) {
  const stage = stages[state.stage];
  if (state.view === "dispatches") {
    const total = measured ? `, ${formatTime(commands.reduce((sum, c) => sum + c.seconds, 0))} in all` : ", not measured";
    return element("div", { css: "bar" }, element("b", {}, `${commands.length} dispatches in ${data.levels} levels`), element("span", { css: "text" }, `${data.kernels.length} kernels${total}; commands of one level run side by side, lines are buffers`),
      element("label", {}, "zoom ", element("input", { type: "range", min: 0.15, max: 1.25, step: 0.05, value: state.zoom, oninput: (event) => view.zoom(Number(event.target.value)) })));
  }
  if (state.view === "memory") {
    const all = data.arenas.reduce((sum, arena) => sum + arena.size, 0), own = buffers.filter((b) => b.role === "workspace");
    return element("div", { css: "bar" }, element("b", {}, `${formatBytes(all)} in ${data.arenas.length} arenas`), element("span", { css: "text" }, `${own.length} temporaries of ${formatBytes(own.reduce((sum, b) => sum + b.size, 0))} share ${formatBytes(data.arenas.find((a) => a.role === "workspace")?.size ?? 0)}`));
  }
  if (state.view === "source") {
    return element("div", { css: "bar" }, element("b", {}, `${sourceIndex.size} lines made ${[...sourceIndex.values()].reduce((sum, line) => sum + line.traced.length, 0)} of ${stages[0].size} nodes`), element("span", { css: "text" }, "dispatches and times count for every line that has a part in them, gradients included"));
  }
  const loose = element("input", { type: "checkbox", onchange: () => go({ loose: !state.loose }) });
  loose.checked = !state.loose;
  const diff = state.view === "diff" && state.stage > 0;
  return element("div", { css: "bar" }, element("b", {}, diff ? `${stages[state.stage - 1].name} → ${stage.name}` : stage.name), element("span", { css: "text" }, `${stage.summary}${stage.statistics && !diff ? "; " + stage.statistics : ""}${diff ? `; ${view.changes} lines changed` : ""}`),
    diff ? element("label", { title: "A node more moves the numbers of all that follow." }, loose, " numbers too") : null);
}

function makeView() {
  if (state.view === "dispatches") return dispatchView();
  if (state.view === "memory") return memoryView();
  if (state.view === "source") return sourceView();
  if (state.view === "diff" && state.stage > 0) return diffView(stages[state.stage - 1], stages[state.stage], state.loose, select);
  return textView(stages[state.stage], select);
}

function draw() {
  drawSides();
  const plan = state.view !== "text" && state.view !== "diff", key = plan ? state.view : `${state.view} ${state.stage} ${state.loose}`;
  if (shown.key !== key) {
    hideTip();
    shown = { key, view: makeView() };
    document.getElementById("main").replaceChildren(barOf(shown.view), shown.view.node);
  }
  drawPanel(state.sel);
  if (plan) return shown.view.mark(state.sel);
  const value = state.sel?.kind === "value" ? lifeOf(state.sel.stage, state.sel.key).find(([index]) => index === state.stage) : null;
  if (state.view === "diff" && state.stage > 0) shown.view.mark(state.sel?.stage, state.sel?.key);
  else shown.view.mark(state.stage, value?.[1], state.line);
}

/// [{text, note, to}] for a search: names and ops of the chosen stage first, then of the others, source lines, kernels and dispatches.
function find(words) {
  const wanted = words.toLowerCase(), hits = [], order = [stages[state.stage], ...stages.filter((s) => s.index !== state.stage)];
  const add = (text, note, to) => hits.length < 60 && hits.push({ text, note, to });
  if (!wanted) return hits;
  const exact = order[0].defs.get(words);
  if (exact) add(order[0].lines[exact.line].trim(), order[0].name, { view: state.view === "diff" ? "diff" : "text", sel: { kind: "value", stage: state.stage, key: words } });
  data.kernels.forEach((kernel, index) => kernel.name.toLowerCase().includes(wanted) && add("@" + kernel.name, "kernel", { sel: { kind: "kernel", index } }));
  commands.forEach((command) => command.label.toLowerCase().includes(wanted) && add(command.label, `dispatch ${command.index}`, { sel: { kind: "command", index: command.index } }));
  for (const stage of order) {
    for (const def of stage.defs.values()) {
      if (hits.length >= 60) break;
      if (stage.scopes[def.line].kernel && stage !== order[0]) continue;
      const place = stage.placeOf.get(def.line), source = place ? `${place.file}:${place.number} ${data.sources[place.file]?.[place.number] ?? ""}` : "";
      if (def === exact || ![def.name, def.op, source].some((text) => text.toLowerCase().includes(wanted))) continue;
      add(stage.lines[def.line].trim(), `${stage.name}${source.toLowerCase().includes(wanted) ? " " + place.file + ":" + place.number : ""}`, { stage: stage.index, view: "text", sel: { kind: "value", stage: stage.index, key: def.key } });
    }
  }
  return hits;
}

const search = document.getElementById("search"), hitList = document.getElementById("hits");
let hits = [], chosen = 0;
function drawHits() {
  hitList.hidden = !hits.length;
  hitList.replaceChildren(...hits.map((hit, i) => element("li", { css: i === chosen ? "on" : "", onmousedown: () => jump(i) }, element("span", {}, hit.note), hit.text)));
  hitList.children[chosen]?.scrollIntoView({ block: "nearest" });
}
function jump(index) {
  const hit = hits[index];
  hits = [];
  drawHits();
  search.blur();
  if (hit) go(hit.to);
}
search.addEventListener("input", () => { hits = find(search.value.trim()); chosen = 0; drawHits(); });
search.addEventListener("blur", () => { hits = []; drawHits(); });
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") jump(chosen);
  else if (event.key === "ArrowDown") chosen = Math.min(chosen + 1, hits.length - 1);
  else if (event.key === "ArrowUp") chosen = Math.max(chosen - 1, 0);
  else if (event.key === "Escape") search.blur();
  else return;
  event.preventDefault();
  drawHits();
});
document.addEventListener("keydown", (event) => {
  if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "j") goToStage(state.stage + 1);
  else if (event.key === "k") goToStage(state.stage - 1);
  else if (event.key === "Escape") go({ sel: null });
  else if (VIEWS[event.key - 1]) go({ view: VIEWS[event.key - 1][0] });
  else if (event.key === "/") search.focus(), search.select();
  else return;
  event.preventDefault();
});

function begin() {
  document.getElementById("title").textContent = data.name;
  document.getElementById("facts").textContent = [data.device || `profile ${data.profile}`, `${lastGraph ? lastGraph.size : 0} nodes`, `${commands.length} dispatches`, measured ? formatTime(commands.reduce((sum, c) => sum + c.seconds, 0)) + " in dispatches" : ""].filter(Boolean).join(" · ");
  const read = () => {
    readAddress(location.hash.slice(1));
    draw();
  };
  read();
  addEventListener("popstate", read);
}
