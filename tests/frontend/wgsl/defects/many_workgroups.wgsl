// One workgroup for each row of a large table.
@group(0) @binding(0) var<storage, read_write> rows: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group: vec3u) {
  if (group.x < arrayLength(&rows)) { rows[group.x] = group.x; }
}
