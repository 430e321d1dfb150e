// SPDX-License-Identifier: Apache-2.0
// Texts: colours, long lists of which only the visible rows exist, a stage alone and beside the one before it.
"use strict";

const ROW = 19, CHAR = 7.53, CONTEXT = 3;

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(name === "css" ? "class" : name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const escapeText = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");

const TOKEN = /("(?:[^"\\]|\\.)*")|([%@](?:"(?:[^"\\]|\\.)*"|[\w.]+))|(#.*|(?<=^|\s);.*$|\/\/.*)|\b(f32|i32|u32|f16|bool|vec[234]|mat\dx\d|array|ptr|atomic|i64|u64)\b|(?<![\w.])(-?(?:\d[\w.]*(?:e[-+]?\d+)?))|([A-Za-z_]\w*)/g;
const WORDS = new Set(("graph group yield output parameter buffer arena kernel symbolic dispatch copy fill level module var fn if else loop break continue " +
  "return store load input state profile let for while switch case struct const override enable workgroup storage function uniform " +
  "OpFunction OpFunctionEnd OpLabel OpReturn OpBranch OpBranchConditional OpLoopMerge OpSelectionMerge").split(" "));

/// A line as HTML; `nameClass(name)` gives the classes of a name.
function colour(line, nameClass) {
  let html = "", at = 0;
  for (const match of line.matchAll(TOKEN)) {
    html += escapeText(line.slice(at, match.index));
    at = match.index + match[0].length;
    const [text, string, name, comment, type, number, word] = match, safe = escapeText(text);
    if (name) html += `<span class="${nameClass(name)}" data-name="${safe}">${safe}</span>`;
    else if (string) html += `<span class="q">${safe}</span>`;
    else if (comment) html += `<span class="c">${safe}</span>`;
    else if (type) html += `<span class="t">${safe}</span>`;
    else if (number) html += `<span class="d">${safe}</span>`;
    else html += WORDS.has(word) ? `<span class="w">${safe}</span>` : safe;
  }
  return html + escapeText(line.slice(at));
}

/// A list of rows of one height. `html(i)` gives [classes, content] of a row; `click(i, name)` hears clicks.
class Lines {
  constructor({ count, width, html, click, onscroll }) {
    Object.assign(this, { count, html });
    this.inner = element("div", { style: `height:${count * ROW + 24}px;width:${Math.ceil(width * CHAR) + 90}px;min-width:100%` });
    this.node = element("div", { css: "lines", onscroll: () => (this.draw(), onscroll?.(this)) }, this.inner);
    this.node.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) click(Number(row.dataset.row), event.target.dataset.name);
    });
    new ResizeObserver(() => this.draw(true)).observe(this.node);
  }
  draw(force) {
    const first = Math.max(0, Math.floor(this.node.scrollTop / ROW) - 12), last = Math.min(this.count, first + Math.ceil((this.node.clientHeight || 800) / ROW) + 24);
    if (!force && this.first === first && this.last === last) return;
    Object.assign(this, { first, last });
    let html = "";
    for (let i = first; i < last; ++i) {
      const [css, content] = this.html(i);
      html += `<div class="row ${css}" style="top:${i * ROW}px" data-row="${i}">${content}</div>`;
    }
    this.inner.innerHTML = html;
  }
  /// Scrolls so that a row is in view, if it is not.
  show(row) {
    const top = row * ROW, height = this.node.clientHeight;
    if (top < this.node.scrollTop + ROW || top > this.node.scrollTop + height - 3 * ROW) this.node.scrollTop = Math.max(0, top - height / 3);
    this.draw();
  }
}

const widest = (lines) => lines.reduce((most, line) => Math.max(most, line.length), 0);

/// A stage's line with the selected name marked: its definition and its uses.
function stageLine(stage, line, selected) {
  const content = colour(stage.lines[line], (name) => {
    const key = stage.key(name, line), kind = name[0] === "@" ? "n s" : "n";
    if (key !== selected) return kind;
    return kind + (stage.defs.get(key)?.line === line ? " def" : " use");
  });
  return `<i>${line + 1}</i>${content}`;
}

function textView(stage, select) {
  const view = new Lines({
    count: stage.lines.length,
    width: widest(stage.lines),
    html: (i) => [i === view.at ? "at" : "", stageLine(stage, i, view.selected)],
    click: (i, name) => select(stage, i, name),
  });
  return {
    node: element("div", { css: "sides" }, view.node),
    mark(index, key, line) {
      view.selected = key;
      view.at = line;
      view.draw(true);
      const at = line ?? stage.defs.get(key)?.line ?? stage.uses.get(key)?.[0];
      if (at !== undefined) view.show(at);
    },
  };
}

/// Runs of equal rows are folded to their ends; `open` holds the starts of the runs that were opened.
function foldRows(rows, open) {
  const out = [];
  for (let i = 0; i < rows.length;) {
    let end = i;
    while (end < rows.length && rows[end].same) ++end;
    if (end === i) { out.push(rows[i++]); continue; }
    const from = i === 0 ? i : i + CONTEXT, to = end === rows.length ? end : end - CONTEXT;
    if (to - from < 4 || open.has(i)) out.push(...rows.slice(i, end));
    else out.push(...rows.slice(i, from), { fold: i, count: to - from }, ...rows.slice(to, end));
    i = end;
  }
  return out;
}

function diffView(before, stage, loose, select) {
  const all = diffLines(before, stage, loose), open = new Set(), sides = [before, stage];
  const changes = all.filter((row) => !row.same).length;
  const node = element("div", { css: "sides" });
  let rows, lists, selected = [];
  const html = (side) => (i) => {
    const row = rows[i], line = side ? row.right : row.left;
    if (row.fold !== undefined) return ["fold", `${row.count} equal lines`];
    if (line === null) return ["none", ""];
    return [row.same ? "" : side ? "come" : "gone", stageLine(sides[side], line, selected[side])];
  };
  const build = () => {
    rows = foldRows(all, open);
    lists = [0, 1].map((side) => new Lines({
      count: rows.length,
      width: widest(sides[side].lines),
      html: html(side),
      click: (i, name) => {
        if (rows[i].fold === undefined) return select(sides[side], side ? rows[i].right : rows[i].left, name);
        const top = lists[0].node.scrollTop;
        open.add(rows[i].fold);
        build();
        lists.forEach((list) => (list.node.scrollTop = top));
      },
      onscroll: (list) => {
        const other = lists[1 - side].node;
        if (other.scrollTop !== list.node.scrollTop) other.scrollTop = list.node.scrollTop;
        if (other.scrollLeft !== list.node.scrollLeft) other.scrollLeft = list.node.scrollLeft;
      },
    }));
    node.replaceChildren(...lists.map((list) => list.node));
    lists.forEach((list) => list.draw(true));
  };
  build();
  return {
    node, changes,
    mark(index, key) {
      selected = sides.map((side) => (key ? lifeOf(index, key).find(([at]) => at === side.index)?.[1] : undefined));
      lists.forEach((list) => list.draw(true));
      const line = stage.defs.get(selected[1])?.line, row = rows.findIndex((r) => r.right === line);
      if (line !== undefined && row >= 0) lists[1].show(row);
    },
  };
}
