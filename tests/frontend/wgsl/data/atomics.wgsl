// Atomics in both address spaces.
struct Counters { hits: atomic<u32>, extremes: array<atomic<i32>, 2> }
@group(0) @binding(0) var<storage, read_write> counters: Counters;
var<workgroup> lock: atomic<u32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lane: u32) {
  atomicAdd(&counters.hits, 1u);
  atomicMax(&counters.extremes[0], i32(lane));
  let smallest = atomicMin(&counters.extremes[1], -i32(lane));
  let result = atomicCompareExchangeWeak(&lock, 0u, lane + 1);
  if result.exchanged { atomicStore(&lock, result.old_value); }
  storageBarrier();
  workgroupBarrier();
  _ = atomicLoad(&lock) + atomicExchange(&lock, u32(smallest));
}
