// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a program that webgpu_dump wrote through WebGPU and compares with what the reference made of them.
// usage: node run_steps.mjs DIR. Ends with 0 within the bounds, 1 outside of them, 3 without an adapter.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, globals } from 'webgpu';

const { GPUBufferUsage, GPUMapMode, GPUShaderStage } = globals;
const [folder] = process.argv.slice(2);
const program = JSON.parse(readFileSync(join(folder, 'program.json'), 'utf8'));
const bytesOf = (file) => readFileSync(join(folder, file));

const gpu = create(['backend=vulkan']);
const adapter = await gpu.requestAdapter();
if (!adapter) {
  console.log('there is no WebGPU adapter');
  process.exit(3);
}
const device = await adapter.requestDevice();
let failure;
device.addEventListener('uncapturederror', (event) => (failure ??= event.error.message));
device.lost.then((info) => (failure ??= info.message));

const arenas = program.arenas.map(({ name, role, size }) => {
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const buffer = device.createBuffer({ label: name, size, usage });
  if (role === 'state' || role === 'constant') device.queue.writeBuffer(buffer, 0, bytesOf(`${name}.start`));
  return buffer;
});
const inputArena = program.arenas.findIndex((arena) => arena.role === 'input');

const pipelines = await Promise.all(
  program.kernels.map(async ({ name, entry, bindings }) => {
    const entries = bindings.map(({ binding, type }) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } }));
    const bindGroupLayout = device.createBindGroupLayout({ entries });
    const module = device.createShaderModule({ label: name, code: bytesOf(`${name}.wgsl`).toString() });
    const layout = device.createPipelineLayout({ bindGroupLayouts: [bindGroupLayout] });
    const compute = { module, entryPoint: entry };
    return { bindings, bindGroupLayout, pipeline: await device.createComputePipelineAsync({ layout, compute }) };
  }),
);

/// The commands in the order in which they run: those of a loop's levels as often as it says, each time with its iteration.
function* commandsInOrder() {
  for (let i = 0; i < program.commands.length; ) {
    const loop = program.loops.find(({ first, last }) => first <= program.commands[i].level && program.commands[i].level <= last);
    let end = i + 1;
    while (loop && end < program.commands.length && program.commands[end].level <= loop.last) ++end;
    for (let iteration = 0; iteration < (loop ? loop.iterations : 1); ++iteration) {
      for (const command of program.commands.slice(i, end)) yield [command, iteration];
    }
    i = end;
  }
}

const inIteration = (range, iteration) => ({ ...range, offset: range.offset + range.step * iteration });

function encodeDispatch(encoder, command, iteration) {
  const { pipeline, bindings, bindGroupLayout } = pipelines[command.dispatch];
  const entries = bindings.map(({ binding }) => {
    const { arena, offset, size } = inIteration(command.bindings[binding], iteration);
    return { binding, resource: { buffer: arenas[arena], offset, size } };
  });
  const pass = encoder.beginComputePass({ label: command.label });
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, device.createBindGroup({ layout: bindGroupLayout, entries }));
  pass.dispatchWorkgroups(...command.groups);
  pass.end();
}

/// A copy goes through a buffer of its own, since both ends may lie in one arena.
function encodeCopy(encoder, [source, target]) {
  const between = device.createBuffer({ size: source.size, usage: GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST });
  encoder.copyBufferToBuffer(arenas[source.arena], source.offset, between, 0, source.size);
  encoder.copyBufferToBuffer(between, 0, arenas[target.arena], target.offset, target.size);
}

function encodeFill(encoder, { fill, pattern }, iteration) {
  const words = device.createBuffer({ size: fill.size, usage: GPUBufferUsage.COPY_SRC, mappedAtCreation: true });
  new Uint32Array(words.getMappedRange()).fill(pattern);
  words.unmap();
  encoder.copyBufferToBuffer(words, 0, arenas[fill.arena], inIteration(fill, iteration).offset, fill.size);
}

async function floatsOf(buffer, offset, size) {
  const target = device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, offset, target, 0, size);
  device.queue.submit([encoder.finish()]);
  await target.mapAsync(GPUMapMode.READ);
  const floats = new Float32Array(target.getMappedRange().slice(0));
  target.unmap();
  return floats;
}

const wrong = [];
let worstLoss = 0;
for (const [i, expected] of program.losses.entries()) {
  if (inputArena >= 0) device.queue.writeBuffer(arenas[inputArena], 0, bytesOf(`step${i + 1}.input`));
  const encoder = device.createCommandEncoder();
  for (const [command, iteration] of commandsInOrder()) {
    if ('dispatch' in command) encodeDispatch(encoder, command, iteration);
    else if ('copy' in command) encodeCopy(encoder, command.copy.map((range) => inIteration(range, iteration)));
    else encodeFill(encoder, command, iteration);
  }
  device.queue.submit([encoder.finish()]);
  const [loss] = await floatsOf(arenas[program.loss.arena], program.loss.offset, 4);
  const apart = Math.abs(loss - expected) / Math.max(Math.abs(expected), 1e-3);
  worstLoss = Math.max(worstLoss, apart);
  if (!(apart <= program.bounds.first_loss + program.bounds.loss_growth * i)) wrong.push(`step ${i + 1}: loss ${loss} and not ${expected}`);
}

/// |got - want| over |want - start|: how far apart the runs went, in units of the way they went.
const floatsOfFile = (file) => new Float32Array(new Uint8Array(bytesOf(file)).buffer);
const start = floatsOfFile(`${program.parameters}.start`);
const want = floatsOfFile(`${program.parameters}.end`);
const got = await floatsOf(arenas[program.arenas.findIndex((arena) => arena.name === program.parameters)], 0, want.byteLength);
const norm = (value) => Math.sqrt(want.reduce((sum, _, i) => sum + value(i) ** 2, 0));
const drift = norm((i) => got[i] - want[i]) / norm((i) => want[i] - start[i]);
if (!(drift <= program.bounds.drift)) wrong.push(`the parameters are ${drift} of their way apart`);
if (failure) wrong.push(failure);

const summary = `losses within ${worstLoss.toExponential(1)}, parameters within ${drift.toExponential(1)} of their way`;
console.log(`${program.name} on ${adapter.info.description || adapter.info.vendor}: ${program.losses.length} steps, ${summary}`);
for (const line of wrong) console.log(`wrong: ${line}`);
// Dawn's threads would keep the process.
process.exit(wrong.length === 0 ? 0 : 1);
