// 1024 x 1024 through tiles of 16 x 16.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 272>;
const N = 1024u;
@compute @workgroup_size(16, 16)
fn main(@builtin(local_invocation_id) l: vec3<u32>, @builtin(workgroup_id) g: vec3<u32>) {
  tile[l.y * 17u + l.x] = x[(g.y * 16u + l.y) * N + g.x * 16u + l.x];
  workgroupBarrier();
  y[(g.x * 16u + l.y) * N + g.y * 16u + l.x] = tile[l.x * 17u + l.y];
}
