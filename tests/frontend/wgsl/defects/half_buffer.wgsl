// Writes a second half that the buffer does not have.
const count = 4u;
@group(0) @binding(0) var<storage, read_write> cache: array<f32>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
  cache[i] = 1.0;
  cache[count + i] = 2.0;
}
