// SPDX-License-Identifier: Apache-2.0
// What templates of attention's gradients load beside q, k and v: the gradient of the result; with it, of each query, the logarithm of the sum of
// its weights and the sum of d_out times out.

fn load_d_out(batch: u32, query: u32, d: u32) -> f32 { return 0.0; }
fn load_lse(batch: u32, query: u32) -> f32 { return 0.0; }
fn load_delta(batch: u32, query: u32) -> f32 { return 0.0; }
