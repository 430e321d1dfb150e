// A buffer of 256 MiB.
override batch: u32 = 2;
@group(0) @binding(0) var<storage, read_write> cache: array<array<f32, 16777216>, 4>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group: vec3u) {
  cache[group.y][group.x] = f32(batch);
}
