// SPDX-License-Identifier: Apache-2.0
// With the address "#test" the page clicks through itself and writes what it counted into its end, for the test in tests/tools/explore.
"use strict";

function selfTest() {
  const counts = {}, count = (selector) => document.querySelectorAll(selector).length;
  const click = (node) => node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const expect = (holds, what) => { if (!holds) throw new Error(what); };

  counts.stages = count(".stage");
  counts.unchanged = count(".stage.same");
  go({ stage: 0, view: "text" });
  for (let i = 1; i < stages.length; ++i) press("j");
  expect(state.stage === stages.length - 1, "j reaches the last stage");
  counts.changes = stages.slice(1).map((stage) => {
    go({ stage: stage.index, view: "diff" });
    expect(shown.view.changes > 0 === (stage.changed && shown.view.changes > 0), `diff of ${stage.name}`);
    expect(stage.changed || shown.view.changes === 0, `${stage.name} is unchanged but has changed lines`);
    return shown.view.changes;
  });

  counts.panels = counts.kernels = counts.sources = counts.members = 0;
  for (const stage of stages.filter((s) => s.form === "graph")) {
    go({ stage: stage.index, view: "text", sel: null });
    for (const [key, def] of stage.defs) {
      if (def.op === "parameter" && stage.lines[def.line].startsWith("parameter")) continue;
      select(stage, def.line, def.name);
      expect(!document.getElementById("panel").hidden && state.sel.key === key, `panel of ${key} in ${stage.name}`);
      expect(count("#panel h2") === 1, `heading of ${key}`);
      ++counts.panels;
      if (stage !== lastGraph) continue;
      counts.kernels += count("#panel pre.kernel") > 0;
      counts.sources += count("#panel pre .here") > 0;
      if (!lastGraph.groups.some((group) => group.members.includes(key))) continue;
      ++counts.members;
      expect([...document.querySelectorAll("#panel dt")].some((node) => node.textContent === "group"), `group of ${key}`);
      expect(!stage.placeOf.has(def.line) || count("#panel pre .here") === 1, `source line of ${key}`);
    }
  }
  counts.placed = lastGraph.groups.filter((group) => group.place?.commands.length).length;
  counts.groups = lastGraph.groups.length;
  press("Escape");
  expect(document.getElementById("panel").hidden, "Esc closes the panel");

  go({ view: "dispatches" });
  counts.boxes = count("svg .box");
  counts.edges = count("svg .edge");
  document.querySelectorAll("svg .box").forEach((box) => { click(box); expect(count("#panel h2") === 1, "panel of a dispatch"); });
  for (const tab of [...document.querySelectorAll("#panel .tabs button")].map((b) => b.textContent)) {
    click([...document.querySelectorAll("#panel .tabs button")].find((b) => b.textContent === tab));
    expect(document.querySelector("#panel pre.kernel").textContent.length > 20, `tab ${tab}`);
  }
  go({ view: "memory" });
  counts.buffers = count("svg .buffer");
  document.querySelectorAll("svg .buffer").forEach((rect) => { click(rect); expect(count("#panel h2") === 1, "panel of a buffer"); });

  go({ view: "source" });
  counts.sourceLines = count(".source .has");
  document.querySelectorAll(".source .has").forEach((row) => { click(row); expect(count(".source .on") === 1 && count("#panel h2") === 1, "panel of a source line"); });

  press("/");
  search.value = "matmul";
  search.dispatchEvent(new Event("input"));
  counts.hits = count("#hits li");
  const wanted = hits[0].to.sel;
  search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", cancelable: true }));
  expect(selectionText(state.sel) === selectionText(wanted), "Enter jumps");
  const value = [...lastGraph.defs.keys()].at(-1);
  go({ stage: lastGraph.index, view: "text", sel: { kind: "value", stage: lastGraph.index, key: value } });
  const before = JSON.stringify([state.stage, state.view, state.sel]), address = addressOf();
  go({ stage: 0, view: "memory", sel: null });
  readAddress(address);
  expect(JSON.stringify([state.stage, state.view, state.sel]) === before, "the address holds the state");
  return counts;
}

const report = (text) => document.body.append(element("pre", { id: "result", hidden: "" }, text));
if (location.hash === "#test") {
  // What a listener throws does not reach who sent the event.
  const errors = [];
  addEventListener("error", (event) => errors.push(event.error));
  try {
    begin();
    const counts = selfTest();
    report(errors.length ? `failed ${errors[0].stack}` : "ok " + JSON.stringify(counts));
  } catch (error) {
    report(`failed ${(errors[0] ?? error).stack}`);
  }
} else {
  begin();
}
