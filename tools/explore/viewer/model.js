// SPDX-License-Identifier: Apache-2.0
// The data as the views need it: the lines of each stage with what they define and use, and which value of one stage is which of the next.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

const NAME = /"(?:[^"\\]|\\.)*"|[%@](?:"(?:[^"\\]|\\.)*"|[\w.]+)/g;

/// Names in a line with their places; strings are skipped, a quoted name is one name.
function namesIn(line) {
  const names = [];
  for (const match of line.matchAll(NAME)) {
    if (match[0][0] !== '"') names.push({ name: match[0], at: match.index });
  }
  return names;
}

/// Where a line's names are known: a kernel's are its own, and those with % belong to its function. "" is the whole stage.
function scopesOf(lines) {
  let kernel = "", fn = "";
  return lines.map((line) => {
    if (line.startsWith("}")) kernel = fn = "";
    const opens = /^kernel (@[\w.]+).*\{$/.exec(line);
    const scope = { kernel, fn };
    if (opens) kernel = opens[1] + "/";
    const inner = kernel && /^  fn (@[\w.]+)/.exec(line);
    if (inner) scope.fn = fn = inner[1] + "/";
    if (line === "  }") fn = "";
    return scope;
  });
}

class Stage {
  constructor(item, index) {
    Object.assign(this, item, { index });
    this.lines = item.text.replace(/\n$/, "").split("\n");
    this.scopes = scopesOf(this.lines);
    this.defs = new Map();
    this.uses = new Map();
    this.placeOf = new Map((item.places || []).map(([line, file, number]) => [line, { file, number }]));
    this.groups = [];
    this.lines.forEach((line, number) => this.addLine(line, number));
    this.closeGroups();
  }

  /// The identity of a name within this stage.
  key(name, line) {
    const { kernel, fn } = this.scopes[line];
    if (!kernel || this.form === "graph") return name;
    return kernel + (name[0] === "%" ? fn : "") + name;
  }

  addLine(line, number) {
    const trimmed = line.trimStart(), equals = line.indexOf(" = "), node = trimmed[0] === "%" && equals > 0;
    const names = namesIn(line);
    const defined = new Set();
    const define = (at, def) => {
      const key = this.key(at.name, number);
      defined.add(at);
      if (!this.defs.has(key)) this.defs.set(key, { key, name: at.name, line: number, ...def });
    };
    if (node) {
      const [op] = /^\S+/.exec(line.slice(equals + 3)) || [""];
      const brace = line.indexOf(" {", equals);
      const operands = names.filter((n) => n.at > equals && (brace < 0 || n.at < brace)).map((n) => this.key(n.name, number));
      const results = names.filter((n) => n.at < equals);
      const attributes = brace < 0 ? "" : line.slice(brace + 1).replace(/ \{$/, "");
      results.forEach((at, index) => {
        const until = index + 1 < results.length ? results[index + 1].at - 2 : equals;
        define(at, { op, index, operands, attributes, type: line.slice(at.at + at.name.length + 2, until) });
      });
      if (this.form === "graph" && (op === "group" || op === "kernel")) {
        this.groups.push({ line: number, end: number, results: results.map((n) => n.name), members: [], yields: [], place: null });
      }
    } else if (names.length && /^(buffer|arena|kernel|var|parameter|fn) /.test(trimmed)) {
      const [word] = /^\w+/.exec(trimmed);
      const own = word === "fn" ? names.filter((n) => line[n.at + n.name.length] === ":" || n === names[0]) : names.slice(0, 1);
      for (const at of own) define(at, { op: word, index: 0, operands: [], attributes: "", type: /^: ([^{,)]*)/.exec(line.slice(at.at + at.name.length))?.[1].trim() || "" });
    }
    for (const at of names) {
      if (defined.has(at)) continue;
      const key = this.key(at.name, number);
      if (!this.uses.has(key)) this.uses.set(key, []);
      if (this.uses.get(key).at(-1) !== number) this.uses.get(key).push(number);
    }
  }

  closeGroups() {
    for (const group of this.groups) {
      if (!this.lines[group.line].endsWith("{")) continue;
      const indent = /^ */.exec(this.lines[group.line])[0];
      for (let line = group.line + 1; line < this.lines.length && this.lines[line] !== indent + "}"; ++line) {
        group.end = line;
        const yields = /^\s*yield (.*)$/.exec(this.lines[line]);
        if (yields) group.yields = namesIn(yields[1]).map((n) => n.name);
        else if (this.lines[line].includes(" = ")) group.members.push(namesIn(this.lines[line])[0].name);
      }
    }
  }

  isName(key) { return this.defs.has(key) || this.uses.has(key); }
}

const stages = data.stages.map((item, index) => new Stage(item, index));
const lastGraph = stages.filter((stage) => stage.form === "graph").at(-1);
const lastStage = stages.at(-1);
if (lastGraph) lastGraph.groups.forEach((group, i) => (group.place = data.groups[i] || null));

/// A number for what a value computes: equal numbers in two stages mean the same operation on the same operands.
const interned = new Map();
function intern(text) {
  if (!interned.has(text)) interned.set(text, interned.size);
  return interned.get(text);
}
function meaningsOf(stage) {
  const yielded = new Map();
  for (const group of stage.groups) group.results.forEach((name, i) => group.yields[i] && yielded.set(name, group.yields[i]));
  const meanings = new Map();
  const visit = (key) => {
    if (meanings.has(key)) return meanings.get(key);
    meanings.set(key, -1);
    const def = stage.defs.get(key);
    let meaning;
    if (!def) meaning = intern("?" + key);
    else if (yielded.has(key)) meaning = visit(yielded.get(key));
    else if (!/^%\d+$/.test(key)) meaning = intern(key + def.type.trim());
    else meaning = intern([def.op, def.attributes, def.type, def.index, ...def.operands.map(visit)].join("|"));
    meanings.set(key, meaning);
    return meaning;
  };
  for (const [key, def] of stage.defs) if (key[0] === "%" && def.op !== "parameter") visit(key);
  return { meanings, yielded };
}

/// Value names of a graph that mean the same in the next one: by what they compute; what was rewritten, by the place of its line.
function linkGraphs(from, to) {
  const links = new Map(), taken = new Set(), waiting = new Map();
  const a = meaningsOf(from), b = meaningsOf(to);
  for (const [key, meaning] of b.meanings) {
    if (b.yielded.has(key)) continue;
    if (!waiting.has(meaning)) waiting.set(meaning, []);
    waiting.get(meaning).push(key);
  }
  for (const [key, meaning] of a.meanings) {
    if (a.yielded.has(key)) continue;
    const found = waiting.get(meaning);
    if (!found) continue;
    const next = found.length > 1 ? found.shift() : found[0];
    links.set(key, next);
    taken.add(next);
  }
  for (const { left, right, same } of diffLines(from, to, true)) {
    if (!same) continue;
    const old = namesIn(from.lines[left]), now = namesIn(to.lines[right]);
    old.forEach((n, i) => {
      if (from.defs.get(n.name)?.line !== left || !now[i] || to.defs.get(now[i].name)?.line !== right) return;
      if (!links.has(n.name) && !taken.has(now[i].name)) links.set(n.name, now[i].name), taken.add(now[i].name);
    });
  }
  return links;
}

/// next(stage index) maps keys to those of the following stage, and previous() back; made when first asked for.
const nextLinks = [];
function next(index) {
  if (nextLinks[index]) return nextLinks[index];
  const from = stages[index], to = stages[index + 1];
  let links = new Map();
  if (to.form === "graph") links = linkGraphs(from, to);
  else if (from.form === "program") for (const key of from.defs.keys()) to.defs.has(key) && links.set(key, key);
  else {
    for (const group of from.groups) {
      group.results.forEach((name, i) => {
        const buffer = data.buffers[group.place?.buffers[i]];
        const key = buffer && "%" + buffer.name;
        if (!key || !to.defs.has(key)) return;
        links.set(name, key);
        if (group.yields[i]) links.set(group.yields[i], key);
      });
    }
    for (const [key, def] of from.defs) if (to.defs.get(key)?.op === "buffer" && !/^%\d+$/.test(key) && def.op !== "reshape") links.set(key, key);
  }
  const back = new Map();
  for (const [key, value] of links) if (!back.has(value)) back.set(value, key);
  return (nextLinks[index] = { links, back });
}

/// [[stage index, key]]: every stage in which a value lives.
function lifeOf(index, key) {
  const life = [[index, key]];
  for (let i = index, at = key; i > 0 && (at = next(i - 1).back.get(at)); --i) life.unshift([i - 1, at]);
  for (let i = index, at = key; i + 1 < stages.length && (at = next(i).links.get(at)); ++i) life.push([i + 1, at]);
  return life;
}

/// The group of the last graph in which a value lives, with its index; null when it is in none.
function groupOf(life) {
  const here = life.find(([index]) => index === lastGraph?.index);
  if (!here) return null;
  const index = lastGraph.groups.findIndex((g) => g.results.includes(here[1]) || g.members.includes(here[1]));
  return index < 0 ? null : { index, ...lastGraph.groups[index] };
}

/// Of a buffer: first and last level of its use, and who writes and reads it.
const buffers = data.buffers.map((buffer, index) => ({ ...buffer, index, first: Infinity, last: -1, writers: [], readers: [] }));
const commands = data.commands.map((command, index) => ({ ...command, index, reads: [], writes: [] }));
for (const command of commands) {
  for (const access of command.accesses) {
    const buffer = buffers[access.buffer];
    buffer.first = Math.min(buffer.first, command.level);
    buffer.last = Math.max(buffer.last, command.level);
    (access.write ? buffer.writers : buffer.readers).push(command.index);
    (access.write ? command.writes : command.reads).push(access);
  }
}
const measured = commands.length > 0 && commands.every((command) => command.seconds !== undefined);

/// The command that last wrote what an access of `command` reads. A result that is made in the bytes of an operand is written under the
/// operand's name, so bytes count, not names; but a write over old bytes depends on nothing.
function makersOf(command, access) {
  const begin = (a) => buffers[a.buffer].offset + a.offset;
  const meets = (a) => (access.write ? a.buffer === access.buffer : buffers[a.buffer].arena === buffers[access.buffer].arena) &&
    begin(a) < begin(access) + access.size && begin(access) < begin(a) + a.size;
  const writers = commands.filter((other) => other.level < command.level && other.writes.some(meets));
  const level = Math.max(...writers.map((other) => other.level));
  return writers.filter((other) => other.level === level);
}

/// {from, to, buffer}
const edges = [];
for (const command of commands) {
  for (const access of command.accesses) {
    for (const { index: from } of makersOf(command, access)) {
      if (!edges.some((e) => e.from === from && e.to === command.index && e.buffer === access.buffer)) edges.push({ from, to: command.index, buffer: access.buffer });
    }
  }
}
/// A temporary that is read before it is written was made in the bytes of another one.
for (const buffer of buffers) {
  buffer.inPlace = buffer.role === "workspace" && buffer.readers.length > 0 && !buffer.writers.some((index) => commands[index].level < commands[buffer.readers[0]].level);
  if (buffer.inPlace) buffer.writers = [...new Set(edges.filter((edge) => edge.buffer === buffer.index && edge.to === buffer.readers[0]).map((edge) => edge.from))];
}

function formatTime(seconds) {
  if (seconds >= 1) return seconds.toPrecision(3) + " s";
  if (seconds >= 1e-3) return (seconds * 1e3).toPrecision(3) + " ms";
  return (seconds * 1e6).toPrecision(3) + " µs";
}
function formatBytes(bytes) {
  if (bytes >= 1 << 20) return (bytes / (1 << 20)).toPrecision(3) + " MiB";
  return bytes >= 1024 ? (bytes / 1024).toPrecision(3) + " KiB" : bytes + " B";
}
