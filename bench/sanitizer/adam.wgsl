// One step of Adam on 1 Mi parameters, in place.
@group(0) @binding(0) var<storage, read_write> p: array<f32>;
@group(0) @binding(1) var<storage, read> g: array<f32>;
@group(0) @binding(2) var<storage, read_write> m: array<f32>;
@group(0) @binding(3) var<storage, read_write> v: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  let mean = 0.9 * m[i] + 0.1 * g[i];
  let square = 0.999 * v[i] + 0.001 * g[i] * g[i];
  m[i] = mean;
  v[i] = square;
  p[i] -= 0.001 * (mean / 0.1) / (sqrt(square / 0.001) + 1e-8);
}
