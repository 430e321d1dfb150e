// Two entry points, each with a part of the bindings.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> parts: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(1)
fn scan(@builtin(workgroup_id) group: vec3u) { parts[group.x] = x[group.x]; }
@compute @workgroup_size(1)
fn reduce() { out[0] = parts[0] + parts[1]; }
