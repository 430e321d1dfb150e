// SPDX-License-Identifier: Apache-2.0
// What all templates of attention have in common. Queries q [batches, queries, width] look at keys k [batches / group, keys, width] with values
// v [batches / group, keys, value_width].

override batches: u32 = 1;  // heads of q
override group: u32 = 1;    // heads of q per head of k and v
override queries: u32 = 1;
override keys: u32 = 1;
override width: u32 = 16;
override value_width: u32 = 16;
override causal: bool = false;  // query t sees keys 0 .. t + offset only
override offset: u32 = 0;
override scale: f32 = 1;
override masked: bool = false;
override vector: u32 = 1;  // 4: widths are multiples of it, and rows are loaded so

fn load_q(batch: u32, query: u32, d: u32) -> f32 { return 0.0; }
fn load_k(batch: u32, key: u32, d: u32) -> f32 { return 0.0; }
fn load_v(batch: u32, key: u32, d: u32) -> f32 { return 0.0; }
fn load_mask(batch: u32, query: u32, key: u32) -> f32 { return 0.0; }
fn workgroup_index(id: vec3<u32>) -> u32 { return id.x; }

const lowest = -0x1.fffffep+127f;
const log2_e = 1.44269504f;
