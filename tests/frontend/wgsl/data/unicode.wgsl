// Names outside ASCII are spelt by their bytes.
fn größe(δ: f32) -> f32 { let π = 3.25; return δ * π; }
