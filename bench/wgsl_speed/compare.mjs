// SPDX-License-Identifier: Apache-2.0
// Text -> validated module: ours, Tint and naga in turns, on the texts that all three take.
// usage: node compare.mjs BENCH_WGSL CORPUS [ROUNDS]; CORPUS is a folder of *.wgsl, or a gzip'd file of JSON lines with a field "wgsl".
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { gunzipSync } from 'node:zlib';
import { nagaErrors } from './naga.mjs';
import { openTint } from './tint.mjs';

const [bench, corpus, rounds = '15'] = process.argv.slice(2);

function readCorpus() {
  if (!corpus.endsWith('.gz')) {
    return readdirSync(corpus).filter((name) => name.endsWith('.wgsl')).map((name) => readFileSync(join(corpus, name), 'utf8'));
  }
  const lines = gunzipSync(readFileSync(corpus)).toString().split('\n').filter((line) => line);
  return lines.map((line) => JSON.parse(line).wgsl);
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const tintErrors = await openTint();
const folder = mkdtempSync(join(tmpdir(), 'wgsl-speed-'));
process.on('exit', () => rmSync(folder, { recursive: true }));

const all = readCorpus();
const texts = new Map();
for (const [i, text] of all.entries()) {
  if ((await tintErrors(text)).length === 0 && nagaErrors(text).length === 0) texts.set(`${i}.wgsl`, text);
}
const byOthers = texts.size;
for (const [name, text] of texts) writeFileSync(join(folder, name), text);
for (const name of execFileSync(bench, ['--refused', folder]).toString().split('\n').filter((line) => line)) {
  texts.delete(name);
  rmSync(join(folder, name));
}

const child = spawn(bench, ['--step', folder], { stdio: ['pipe', 'pipe', 'inherit'] });
const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

/// Milliseconds of processor time of all threads, so that a machine that is busy with something else changes little.
async function timed(work) {
  const start = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

/// Milliseconds of one round each. Dawn keeps modules by their text, so every round has texts of its own.
const contenders = {
  async lockstep() {
    child.stdin.write('\n');
    return Number((await answers.next()).value);
  },
  async tint(sources) {
    let errors;
    const time = await timed(async () => (errors = await Promise.all(sources.map((source) => tintErrors(source)))));
    if (errors.flat().length > 0) throw new Error(errors.flat()[0]);
    return time;
  },
  async naga(sources) {
    let errors;
    const time = await timed(async () => (errors = sources.flatMap((source) => nagaErrors(source))));
    if (errors.length > 0) throw new Error(errors[0]);
    return time;
  },
};

const times = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
for (let round = -1; round < Number(rounds); ++round) {
  const sources = [...texts.values()].map((text) => `${text}\n// ${round}\n`);
  for (const [name, run] of Object.entries(contenders)) {
    const time = await run(sources);
    if (round >= 0) times[name].push(time); // the first round warms up
  }
}
child.stdin.end();

const megabytes = [...texts.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0) / 1e6;
console.log(`${all.length} texts, ${byOthers} that Tint and naga take, ${texts.size} that we take too: ${megabytes.toFixed(3)} MB`);
for (const [name, values] of Object.entries(times)) {
  const ratio = median(values.map((value, i) => value / times.lockstep[i]));
  const speed = `${median(values).toFixed(1)} ms, ${((megabytes / median(values)) * 1e3).toFixed(1)} MB/s`;
  console.log(`${name.padEnd(9)} ${speed.padEnd(24)} ${ratio.toFixed(2)} times ours (median of ${values.length} rounds)`);
}
process.exit(0);
