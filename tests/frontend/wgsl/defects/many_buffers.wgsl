// Twelve storage buffers, where every device has eight.
@group(0) @binding(0) var<storage, read> dy: array<f32>;
@group(0) @binding(1) var<storage, read> delta: array<f32>;
@group(0) @binding(2) var<storage, read> decay: array<f32>;
@group(0) @binding(3) var<storage, read> keys: array<f32>;
@group(0) @binding(4) var<storage, read> queries: array<f32>;
@group(0) @binding(5) var<storage, read> skip: array<f32>;
@group(0) @binding(6) var<storage, read> state: array<f32>;
@group(0) @binding(7) var<storage, read_write> d_x: array<f32>;
@group(0) @binding(8) var<storage, read_write> d_delta: array<f32>;
@group(0) @binding(9) var<storage, read_write> d_decay: array<f32>;
@group(0) @binding(10) var<storage, read_write> d_keys: array<f32>;
@group(0) @binding(11) var<storage, read_write> d_queries: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  let g = dy[i] * decay[i] * skip[i] + state[i];
  d_x[i] = g * delta[i];
  d_delta[i] = g * keys[i];
  d_decay[i] = g * state[i];
  d_keys[i] = g * delta[i];
  d_queries[i] = queries[i] * dy[i];
}
