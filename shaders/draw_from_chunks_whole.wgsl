// SPDX-License-Identifier: Apache-2.0
// One element of a line is drawn, from its chunks in falling order with the sums of their weights, by a workgroup per line. Each rule leaves
// a first part of every chunk. Where it ends is found by halving the range of keys: for a key, each chunk finds by halving how many elements
// are not below it, and so how much they weigh together. All sums have one order. The hooks are replaced by the compiler.
// With shared/ranked_chunks.wgsl.

fn load_keys(batch: u32, part: u32, rank: u32) -> i32 { return 0; }
fn load_places(batch: u32, part: u32, rank: u32) -> i32 { return 0; }
fn load_sums(batch: u32, part: u32, rank: u32) -> f32 { return 0.0; }
fn load_top_k(batch: u32) -> i32 { return 0; }
fn load_top_p(batch: u32) -> f32 { return 0.0; }
fn load_min_p(batch: u32) -> f32 { return 0.0; }
fn load_uniform(batch: u32) -> f32 { return 0.0; }
fn store_place(batch: u32, value: i32) {}

// What a search looks for: the largest key such that what is not below it ...
const counts = 0u;   // ... are so many elements,
const reaches = 1u;  // ... weighs as much,
const passes = 2u;   // ... weighs more.

var<workgroup> left_of: array<u32, chunks>;    // elements of each chunk that no rule has left out
var<workgroup> above_of: array<u32, chunks>;   // those above the range of keys,
var<workgroup> within_of: array<u32, chunks>;  // and those above it or in it
var<workgroup> middle_of: array<u32, chunks>;  // those that are not below the key that halves it
var<workgroup> last_of: array<i32, chunks>;    // keys
var<workgroup> share_of: array<f32, chunks>;   // what the sums of a chunk are multiplied by
var<workgroup> weight_of: array<f32, chunks>;
var<workgroup> largest_key: i32;
var<workgroup> range: vec3<i32>;  // the lowest and the highest key, and whether the last half was the upper one
var<workgroup> found_key: i32;
var<workgroup> goal: f32;
var<workgroup> rules: vec3<u32>;  // whether top_k, top_p and min_p leave anything out

fn within(x: f32, otherwise: f32) -> f32 {
  let is_nan = (bitcast<i32>(x) & all_but_sign) > infinity;
  return clamp(select(x, otherwise, is_nan), 0, 1);
}

// Of the first elements of a chunk, together.
fn weight_up_to(batch: u32, part: u32, count: u32) -> f32 {
  if (count == 0) {
    return 0.0;
  }
  let sum = load_sums(batch, part, count - 1);
  let is_nan = (bitcast<i32>(sum) & all_but_sign) > infinity;
  return clamp(select(sum, 0.0, is_nan), 0, f32(chunk)) * share_of[part];
}

// For one invocation.
fn sum_of_weights() -> f32 {
  var sum = 0.0;
  for (var part = 0u; part < chunks; part++) {
    sum += weight_of[part];
  }
  return sum;
}
fn tied() -> u32 {
  var count = 0u;
  for (var part = 0u; part < chunks; part++) {
    count += within_of[part] - above_of[part];
  }
  return count;
}

// For all of them: what is left weighs this much, times a factor.
fn aim(batch: u32, lane: u32, factor: f32) {
  for (var part = lane; part < chunks; part += lanes) {
    weight_of[part] = weight_up_to(batch, part, left_of[part]);
  }
  workgroupBarrier();
  if (lane == 0) {
    goal = factor * sum_of_weights();
  }
}

// Leaves the key in found_key, the elements above it in above_of, those with it as well in within_of, and the weights above it in weight_of.
fn search(batch: u32, lane: u32, kind: u32) {
  var above = 0u;  // in all chunks
  var all = 0u;
  for (var part = lane; part < chunks; part += lanes) {
    above_of[part] = 0;
    within_of[part] = left_of[part];
    last_of[part] = load_keys(batch, part, max(left_of[part], 1) - 1);
  }
  workgroupBarrier();
  if (lane == 0) {
    var lowest = largest_key;
    for (var part = 0u; part < chunks; part++) {
      lowest = select(lowest, min(lowest, last_of[part]), left_of[part] > 0);
      all += left_of[part];
    }
    range = vec3<i32>(lowest, largest_key, 0);
  }
  // The largest key, 32 halvings of all the others, and the end.
  for (var round = 0u; round < 34; round++) {
    let now = workgroupUniformLoad(&range);
    if (round > 0) {
      for (var part = lane; part < chunks; part += lanes) {
        if (now.z == 1) {
          within_of[part] = middle_of[part];
        } else {
          above_of[part] = middle_of[part];
        }
      }
    }
    if (now.x == now.y) {
      break;
    }
    let half = (bitcast<u32>(now.y) - bitcast<u32>(now.x) + 1) / 2;
    let key = select(bitcast<i32>(bitcast<u32>(now.x) + half), now.y, round == 0);
    for (var part = lane; part < chunks; part += lanes) {
      var first = above_of[part];
      var end = within_of[part];
      for (var halved = 0u; halved <= doublings && first < end; halved++) {
        let rank = (first + end) / 2;
        if (load_keys(batch, part, rank) >= key) {
          first = rank + 1;
        } else {
          end = rank;
        }
      }
      middle_of[part] = first;
      weight_of[part] = weight_up_to(batch, part, first);
    }
    workgroupBarrier();
    if (lane == 0) {
      var count = 0u;
      var sum = 0.0;
      for (var part = 0u; part < chunks; part++) {
        count += middle_of[part];
        sum += weight_of[part];
      }
      let upper = (kind == counts && f32(count) >= goal) || (kind == reaches && sum >= goal) || (kind == passes && sum > goal);
      above = select(count, above, upper);
      all = select(all, count, upper);
      let next = select(vec3<i32>(now.x, key - 1, 0), vec3<i32>(key, now.y, 1), upper);
      // One element that is left in the range is what is looked for.
      range = select(next, vec3<i32>(0, 0, next.z), all - above == 1);
    }
  }
  workgroupBarrier();
  for (var part = lane; part < chunks; part += lanes) {
    weight_of[part] = weight_up_to(batch, part, above_of[part]);
  }
  workgroupBarrier();
  if (lane == 0) {
    var part = 0u;
    for (var i = 0u; i < chunks; i++) {
      part = select(part, i, within_of[i] > above_of[i]);
    }
    found_key = load_keys(batch, part, above_of[part]);
  }
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let flat = workgroup_index(id);
  // Surplus workgroups of a split dispatch repeat the last line and store nothing: barriers must be reached by all.
  let batch = min(flat, batches - 1);

  for (var part = lane; part < chunks; part += lanes) {
    left_of[part] = min(chunk, length - part * chunk);
    last_of[part] = load_keys(batch, part, 0);
  }
  workgroupBarrier();
  if (lane == 0) {
    var largest = last_of[0];
    for (var part = 1u; part < chunks; part++) {
      largest = max(largest, last_of[part]);
    }
    largest_key = largest;
    let top_k = load_top_k(batch);
    rules = vec3<u32>(select(0u, 1u, top_k > 0 && u32(top_k) < length), select(0u, 1u, within(load_top_p(batch), 1) < 1),
                      select(0u, 1u, within(load_min_p(batch), 0) > 0));
    goal = f32(top_k);
  }
  let uses = workgroupUniformLoad(&rules);
  for (var part = lane; part < chunks; part += lanes) {
    share_of[part] = weight(last_of[part], largest_key);
  }
  workgroupBarrier();

  if (uses.x == 1) {
    search(batch, lane, counts);
    for (var part = lane; part < chunks; part += lanes) {
      left_of[part] = within_of[part];
    }
    workgroupBarrier();
  }
  if (uses.y == 1) {
    aim(batch, lane, within(load_top_p(batch), 1));
    search(batch, lane, reaches);
    if (lane == 0) {
      // Of equal elements those before whose place the others weigh less.
      let each = weight(found_key, largest_key);
      let wanted = select(1.0, ceil((goal - sum_of_weights()) / each), each > 0);
      var stay = u32(clamp(wanted, 1, f32(tied())));
      for (var part = 0u; part < chunks; part++) {
        let here = min(stay, within_of[part] - above_of[part]);
        left_of[part] = above_of[part] + here;
        stay -= here;
      }
    }
    workgroupBarrier();
  }
  if (uses.z == 1) {
    let least = within(load_min_p(batch), 0);
    for (var part = lane; part < chunks; part += lanes) {
      var first = 0u;
      var end = left_of[part];
      for (var halved = 0u; halved <= doublings && first < end; halved++) {
        let rank = (first + end) / 2;
        if (weight(load_keys(batch, part, rank), largest_key) >= least) {
          first = rank + 1;
        } else {
          end = rank;
        }
      }
      left_of[part] = first;
    }
    workgroupBarrier();
  }

  aim(batch, lane, within(load_uniform(batch), 0));
  search(batch, lane, passes);
  if (lane == 0 && flat < batches) {
    let count = tied();
    let each = weight(found_key, largest_key);
    let last = f32(count - 1);
    var after = u32(clamp(select(last, floor((goal - sum_of_weights()) / each), each > 0), 0, last));
    var place = 0i;
    for (var part = 0u; part < chunks; part++) {
      let here = within_of[part] - above_of[part];
      if (after < here) {
        place = i32(part * chunk) + load_places(batch, part, above_of[part] + after);
        break;
      }
      after -= here;
    }
    store_place(batch, place);
  }
}
