// Pointers to variables and parts of them, as parameters and as lets.
struct Pair { first: vec2<f32>, second: array<f32, 3> }
@group(0) @binding(0) var<storage, read_write> pairs: array<Pair>;
var<private> total: f32;

fn add(target_: ptr<function, f32>, amount: f32) { *target_ += amount; }
fn last(values: ptr<storage, array<f32, 3>, read_write>) -> f32 { return values[2] + (*values)[1]; }

fn main(i: u32) -> f32 {
  var sum = 0.0;
  add(&sum, 1.0);
  let pair = &pairs[i];
  pair.first.y = sum;
  (*pair).second[i] = pair.first.x;
  let q = &pair.second;
  total += last(q) + length(pair.first.yx);
  return total;
}
