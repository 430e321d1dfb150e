// Returns by a global id, so that a barrier may be reached by some invocations only.
@group(0) @binding(0) var<storage, read_write> sums: array<f32>;
@group(0) @binding(1) var<uniform> batches: u32;
var<workgroup> tile: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
  if (id.z >= batches) { return; }
  tile[lane] = sums[id.x];
  workgroupBarrier();
  sums[id.x] = tile[63u - lane];
}
