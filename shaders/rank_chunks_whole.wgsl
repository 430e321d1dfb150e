// SPDX-License-Identifier: Apache-2.0
// A workgroup sorts a chunk of a line in its memory, largest first (Batcher 1968, bitonic), by keys that order as the numbers do, with NaN
// above everything. Then it sums up the weights e^(x - largest of the chunk), in a tree whose shape depends on the chunk alone (Brent and
// Kung 1982). The hooks are replaced by the compiler.
// With shared/ranked_chunks.wgsl.

fn load_x(batch: u32, i: u32) -> f32 { return 0.0; }
fn store_keys(batch: u32, part: u32, rank: u32, value: i32) {}
fn store_places(batch: u32, part: u32, rank: u32, value: i32) {}
fn store_sums(batch: u32, part: u32, rank: u32, value: f32) {}

const after_all = i32(-0x7fffffff - 1);  // the key of what is past the end of the line: no number has it

var<workgroup> keys: array<i32, chunk>;
var<workgroup> places: array<i32, chunk>;
var<workgroup> sums: array<f32, chunk>;

// As the op "ordering" has it.
fn key_of(x: f32) -> i32 {
  let bits = bitcast<i32>(x);
  let size = bits & all_but_sign;
  var key = select(bits, bits ^ all_but_sign, bits < 0);
  key = select(key, 0, size == 0);
  return select(key, all_but_sign, size > infinity);
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let flat = workgroup_index(id);
  if (flat >= batches * chunks) {
    return;
  }
  let batch = flat / chunks;
  let part = flat % chunks;

  for (var i = lane; i < chunk; i += lanes) {
    let place = part * chunk + i;
    let key = key_of(load_x(batch, min(place, length - 1)));
    keys[i] = select(after_all, key, place < length);
    places[i] = i32(i);
  }
  workgroupBarrier();

  for (var doubled = 1u; doubled <= doublings; doubled++) {
    for (var halved = 0u; halved < doubled; halved++) {
      let apart = 1u << (doubled - halved - 1);
      for (var pair = lane; pair < chunk / 2; pair += lanes) {
        let i = pair / apart * 2 * apart + pair % apart;
        let j = i + apart;
        let is_ordered = keys[i] > keys[j] || (keys[i] == keys[j] && places[i] < places[j]);
        // Runs fall and rise in turn, so that two of them are one that falls and then rises.
        if (is_ordered != ((i >> doubled) % 2 == 0)) {
          let key = keys[i];
          keys[i] = keys[j];
          keys[j] = key;
          let place = places[i];
          places[i] = places[j];
          places[j] = place;
        }
      }
      workgroupBarrier();
    }
  }

  for (var i = lane; i < chunk; i += lanes) {
    sums[i] = select(weight(keys[i], keys[0]), 0.0, keys[i] == after_all);
    store_keys(batch, part, i, keys[i]);
    store_places(batch, part, i, places[i]);
  }
  workgroupBarrier();
  for (var doubled = 0u; doubled < doublings; doubled++) {
    let apart = 1u << doubled;
    for (var pair = lane; pair < chunk / 2; pair += lanes) {
      let last = (pair + 1) * 2 * apart - 1;
      if (last < chunk) {
        sums[last] += sums[last - apart];
      }
    }
    workgroupBarrier();
  }
  for (var halved = 1u; halved < doublings; halved++) {
    let apart = 1u << (doublings - halved - 1);
    for (var pair = lane; pair < chunk / 2; pair += lanes) {
      let last = (pair + 1) * 2 * apart - 1;
      if (last + apart < chunk) {
        sums[last + apart] += sums[last];
      }
    }
    workgroupBarrier();
  }
  for (var i = lane; i < chunk; i += lanes) {
    store_sums(batch, part, i, sums[i]);
  }
}
