// select() reads the row before the first one.
const rows = 128u;
@group(0) @binding(0) var<storage, read> state: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) lane: vec3u) {
  let b = group.z;
  for (var t = 0u; t < rows; t++) {
    let before = select(0.0, state[(b * rows + t - 1u) * 8u + lane.x], t > 0u);
    out[(b * rows + t) * 8u + lane.x] = before;
  }
}
