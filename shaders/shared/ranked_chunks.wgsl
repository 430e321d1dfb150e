// SPDX-License-Identifier: Apache-2.0
// What is drawn from: scores [batches, length], ranked in chunks of them.

override batches: u32 = 1;
override length: u32 = 1;  // of a line
override chunk: u32 = 1;  // 2^doublings
override lanes: u32 = 64;
override vector: u32 = 1;

override chunks: u32 = 1;  // of a line
override doublings: u32 = 0;

fn workgroup_index(id: vec3<u32>) -> u32 { return id.x; }

const all_but_sign = 0x7fffffffi;
const infinity = 0x7f800000i;  // its key

fn number_of(key: i32) -> f32 {
  return bitcast<f32>(select(key, key ^ all_but_sign, key < 0));
}
// Told by keys, as drivers may take infinities and NaN as they like.
fn weight(key: i32, largest: i32) -> f32 {
  let is_finite = largest < infinity && largest > -infinity - 1;
  if (key == largest) {
    return 1.0;
  }
  if (!is_finite || key <= -infinity - 1) {
    return 0.0;
  }
  return exp(number_of(key) - number_of(largest));
}
