// An offset beyond 32 bits, for a dispatch of a few thousand workgroups.
const length = 2048u;
const width = 1024u;
@group(0) @binding(0) var<storage, read_write> cache: array<f32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group: vec3u) {
  cache[group.x * length * width] = 1.0;
}
