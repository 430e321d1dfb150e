// SPDX-License-Identifier: Apache-2.0
// What passes assume work to cost: every number that a chooser compares with stands here, with the measurement or the reason that it came
// from. Measured means one H100 through Vulkan (driver 580.159) or lavapipe (Mesa 22.3) on two cores; bench/results has the tables.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ir/program/profile.h"

namespace lockstep::passes::cost {

/// What a device does at best. `lockstep profile` measures its own; compiling takes those of the profile.
struct Rates {
  double bytes_per_second = 0;
  double operations_per_second = 0;  ///< f32, a fused multiply-add counted as two
  double dispatch_seconds = 0;       ///< of an empty dispatch beside others
  double level_seconds = 0;          ///< of a level with one empty dispatch, and its barrier
};
constexpr Rates ratesOf(const program::DeviceRates& rates) {
  return {1e6 * rates.memory_mb_per_second, 1e6 * rates.f32_mflops, 1e-9 * rates.dispatch_ns, 1e-9 * rates.level_ns};
}
inline Rates ratesOf(const program::DeviceProfile& profile) {
  return ratesOf({profile.memory_mb_per_second, profile.f32_mflops, profile.dispatch_ns, profile.level_ns});
}
inline constexpr Rates kGpu = ratesOf(program::kGpuRates);

/// Operations, none of them fused, that take as long as a dispatch in a level of its own.
inline int64_t operationsOfDispatch(const program::DeviceProfile& profile) {
  const Rates rates = ratesOf(profile);
  return static_cast<int64_t>(rates.operations_per_second / 2 * (rates.dispatch_seconds + rates.level_seconds));
}

/// Elements that are written and read in the time of a level.
inline int64_t elementsOfLevel(const program::DeviceProfile& profile) {
  constexpr double kBytes = 8;  // of an f32, written and read
  const Rates rates = ratesOf(profile);
  return static_cast<int64_t>(rates.bytes_per_second * rates.level_seconds / kBytes);
}

/// The time that work takes at least.
struct Floor {
  double memory = 0, compute = 0;  ///< seconds
  [[nodiscard]] double seconds() const { return std::max(memory, compute); }
};
constexpr Floor floorOf(uint64_t bytes, uint64_t operations, const Rates& rates) {
  return {.memory = static_cast<double>(bytes) / rates.bytes_per_second,
          .compute = static_cast<double>(operations) / rates.operations_per_second};
}

inline constexpr int64_t kElementBytes = 4;

// Scans along few lines.

/// Elements of a part of a line that is cut, how many parts at most, and lines per unit from which on there is work for all without that.
/// Reasons, not measurements: a part is several elements for each lane of a workgroup, the parts' last elements are one such part again,
/// and two more ways through memory must be fewer than the units that would be idle.
inline constexpr int64_t kScannedPart = 2048, kMostScannedParts = 4096, kManyScannedLines = 1;
/// Rows of a part where lines lie side by side and only their totals are wanted.
inline constexpr int64_t kFoldedPart = 64;

// Ops with templates.

/// Elements that the decomposition has to keep in memory where a template is worth it: by tiles, and by streams, which products beat by a
/// factor of up to three on CPUs and five on an H100, so they are for what would take 256 MiB. On the H100 attention by tiles takes 1.1
/// times as long as products at 2^18 scores, with its gradient 1.3 times; at 2^22 (8 x 8 x 256) 0.54 and 0.81 times, and of few long
/// sequences (1 x 8 x 1024) 0.76 and 1.14 times.
inline constexpr int64_t kLeastSaved = int64_t{1} << 20, kLeastSavedByStreams = int64_t{1} << 26;
/// Invocations of a workgroup of a stream; a CPU driver runs them as vectors, one after the other.
inline constexpr int64_t kStreamLanes = 64, kStreamLanesCpu = 16;
/// Elements that a round of a stream goes over, and steps at most: a longer text compiles longer and saves little.
inline constexpr int64_t kStreamElements = 256, kStreamBlock = 4;
/// Tiled templates: invocations of a workgroup, of which three share the registers of a multiprocessor (of 384 or 512 they are up to twice
/// as slow), and elements of both tensors that go through workgroup memory at a time, 16 KiB.
inline constexpr int64_t kTiledLanes = 128, kTiledElements = 4096;
/// Elements that the workgroups of a template compute themselves where they load them, once each: rotary positions of the queries of split
/// rows, what a row is multiplied by before its digits are made. More are many sequences, which have a kernel of their own for that.
inline constexpr int64_t kMostLoadedPrologue = 16384;
/// Keys that a part of a split row takes together: loads that are under way at a time; 16 bytes of f32 of a key, so many times, that an
/// invocation takes, and invocations of a workgroup where there are few rows. A token of 14 rows of 512 keys took 16 turns one after the
/// other with 128 invocations and a quarter of a key in each.
inline constexpr int64_t kSplitBlock = 4, kSplitQuads = 2, kMostSplitLanes = 512;
/// On CPU drivers an invocation has whole keys: elements of a block of them at most, and the widest key. With heads of 256, 128 and 64
/// lavapipe compiled blocks of four for 33, 8 and 3 s, and these for 5, 3.5 and 0.3; with heads of 260 a block of one still takes 37 s.
inline constexpr int64_t kSplitElementsCpu = 256, kWidestSplitCpu = 256;
/// Turns of a workgroup with the keys of its row from which on several share the row, turns that each of them has at least, and how many
/// they are at most: each element reads what all of them found. A turn takes 1.4 us on an H200, and the level that puts it together 2.6 us.
inline constexpr int64_t kManySplitTurns = 8, kLeastTurnsOfShare = 2, kMostKeyShares = 16;
/// What an invocation holds, by the elements of a row and its results in halves of a step's: elements of a tensor, rows, and steps that it
/// takes together. At 8 x 12 x 1024 x 64 attention takes 583 µs, with 16 elements of 2 rows 610, of 4 rows 640; its gradients 724 µs (16 of
/// 2: 758 to 843) and 1035 (32 of 1: 1079).
/// With few workgroups for each unit, several shares of their invocations take turns with the blocks, as long as each has enough rounds and
/// there are no more workgroups per unit than shared_groups. Forward (µs, 1, 2 and 4 shares): 8 x 8 x 256 x 64 45, 41 and 50; 1 x 8 x 1024
/// 133, 86 and 79; 1 x 8 x 2048 261, 250 and 232; 8 x 12 x 1024 569, 622 and 757. With the gradient, keys by 1 and 2: 1 x 8 x 1024 436 and
/// 379; 1 x 8 x 2048 920 and 1033. Queries: 436 and 446; 920 and 1087, so that template has no
/// shares.
struct TiledRow {
  int64_t halves, per_lane, rows, block, shared_groups;
};
inline constexpr std::array kTiledRows{TiledRow{4, 16, 2, 1, 2}, TiledRow{3, 32, 1, 2, 0}, TiledRow{0, 32, 1, 8, 8}};
/// The same by matrix units: the widest row, by halves as above (3: gradients) and by parts. Gradients of wider ones in two parts do not
/// fit into registers, nor do more rows per subgroup. Of the steps, kMatrixSteps go through workgroup memory at a time: with 16, gradients
/// of 4 x 8 x 2048 x 128 in bf16 take 874 us on an H200 (785), those of 8 x 8 x 2048 x 64 in f32 2478 (2162), and f32 at 4 x 8 x 2048 x 128
/// takes 973 (793).
struct MatrixRows {
  int64_t halves, parts, widest;
};
inline constexpr std::array kMatrixRows{MatrixRows{3, 1, 128}, MatrixRows{3, 2, 64}, MatrixRows{2, 1, 128}, MatrixRows{2, 2, 128}};
inline constexpr int64_t kMatrixSubgroups = 4, kMatrixSubRows = 16, kMatrixSteps = 32, kLeastMatrixSteps = 32;
/// Twice as many steps at a time for rows of 16 bits, without gradients, where few workgroups have long rows: 1 x 8 x 2048 x 64 takes 45 us
/// in bf16, and 65 with 32 steps; 1 x 8 x 8192 x 64 412 and 461. More workgroups share a unit, and they hide its barriers: 8 x 8 x 2048 x
/// 64 takes 244 and 238. The registers of wider rows do not suffice.
inline constexpr int64_t kWidestOfDeepSteps = 64, kLeastDeepSteps = 1024, kMostDeepGroups = 8;
inline constexpr int64_t kMostShares = 4, kLeastRoundsOfShare = 16;
/// Templates with integer dot products: what a subgroup has at a time, by the elements of a piece, which are 32 of 4 bits and 16 of 8.
/// Twice as much takes so many registers that it is slower: two matrices of 14336 rows of 4096 in int4 take 24.5 us on an H200, and 35 with
/// four pieces of two rows.
struct DigitStep {
  int64_t piece, rows, lane_pieces;
};
inline constexpr std::array kDigitSteps{DigitStep{32, 2, 2}, DigitStep{16, 1, 4}};
/// Operations from which a row times a packed matrix is made of integer dot products: 2^23 multiplications. A smaller matrix is read while
/// its numbers become floats, and as sums it takes in the norm before it and what comes after it: a token of Qwen2.5-0.5B has 126 levels
/// so, and 245 by dot products.
inline constexpr int64_t kLeastOfLargeRow = int64_t{1} << 24;
/// Subgroups of a workgroup, rows that each has in all where there are many, and pieces at a time where there are no subgroups. A workgroup
/// makes the digits of x before it multiplies: the same two matrices take 26.0 us with four rows in all, and 24.5 with eight.
inline constexpr int64_t kDigitSubgroups = 16, kLeastDigitSubgroups = 8, kMostDigitRows = 8, kDigitLoads = 8;
/// Templates of whole runs: invocations of a workgroup, as many as give each so many scores or vectors.
inline constexpr int64_t kLeastWholeLanes = 32, kMostWholeLanes = 256, kWholeItems = 2;

// Copies of operands in rows of odd lengths (padProducts).

/// Results per unit from which matrix units have enough to do. Then shares of the time in plain f32 that they save at 4096 (H100, TFLOP/s:
/// plain 47, two parts 74, bf16 254). bf16 reaches 108 without the copies.
inline constexpr int64_t kLeastPaddedResults = 64 * 64;
inline constexpr double kSavedByPaddedSplit = 0.35, kSavedByPaddedHalves = 0.25;

// What is computed again in place of being kept (fuse).

/// Operations that every reader of a value repeats where it reads at most half as many elements as the value has. They take a quarter of
/// the time of one f32 on the GPU (above), and the value is neither written nor read.
inline constexpr int64_t kRepeatedOfSmall = 16;
static_assert(kRepeatedOfSmall / kGpu.operations_per_second <= 0.25 * kElementBytes / kGpu.bytes_per_second);
/// The same where the reader has to read a value of full size in any case. Each reader repeats them and none saves a read, only the write
/// and the memory: so they should not count at all.
inline constexpr size_t kRepeatedOfLarge = 4;
/// Values of full size that it is computed from, where its readers read each of them in any case.
inline constexpr size_t kMostLargeOfRepeated = 2;
/// A value is small beside one of at least so many times its elements: reading it once more costs at most half of what is saved.
inline constexpr int64_t kSmallerBy = 2;
/// The same for one that is stored for that alone: of a norm there are two, which are written and read.
inline constexpr int64_t kStoredSmallerBy = 16;
/// Operations that every reader of a packed value of 16 bits repeats where their result would take twice its bytes. They take less time
/// than reading that result.
inline constexpr int64_t kRepeatedOfPacked = 32;
static_assert(kRepeatedOfPacked / kGpu.operations_per_second <= kElementBytes / kGpu.bytes_per_second);
/// Operations that a product repeats in its loads for each element of what it reads. A convolution of 3 x 3 with two tiles of results would
/// compute the gradient of max pooling, five operations, 18 times.
inline constexpr int64_t kRepeatedInLoads = 32;
/// Operations on positions and constants alone, with these, that it repeats in any case: a load of their result would take as long.
inline constexpr int64_t kRepeatedOfPositions = 6;
/// Multiplications of a product that takes longer than a dispatch and its level: 3 µs at 47 TFLOP/s.
inline constexpr int64_t kLeastBusyProducts = int64_t{1} << 26;
/// Results of a product along each side that share what is loaded: a workgroup's, on GPUs of the tiles that are taken for large ones. On
/// CPU drivers rows are kRegisterRows, and each lane of a vector loads what all of them read of the left operand.
inline constexpr int64_t kSharedRows = 128, kSharedColumns = 128, kSharedColumnsCpu = 64;
/// Elements of a value below which memory is not what counts: these take less than a thirtieth of a dispatch.
inline constexpr int64_t kLittleMemory = 4096;
static_assert(30 * kLittleMemory * kElementBytes / kGpu.bytes_per_second < kGpu.dispatch_seconds);

// Reductions (splitReductions).

/// Elements that one workgroup sums up before a second stage, with its level, would be worth it: 64 for each of 256 lanes.
inline constexpr int64_t kShortestSum = 16384;
/// The same for the inner axis of a product, where each element is an operand's row and column: a tile of 16 x 16 with an inner axis of 512
/// is 32 rounds. Splitting these axes took the weight gradients of the addition sample from 28 to 9 µs each.
inline constexpr int64_t kShortestInner = 512;
/// Elements of a part that is still worth a workgroup: as many as it has lanes at least.
inline constexpr int64_t kShortestPart = 64;
/// Rows of a part of a long column: 16 turns of 4 loads for each of 16 lanes. Of 16384 rows by 1536 columns a workgroup takes 256 turns,
/// one after the other, which lasts longer than the product of 16384 x 1536 x 384 beside it (403 µs together on an H100, 266 without).
inline constexpr int64_t kLongColumn = 1024;
/// Rows of sums by columns that stay whole where workgroups are large enough for many lanes per column: 16 turns of 8 loads for each of 64
/// lanes. 1024 lanes with 8 loads under way are 32 KiB, and a multiprocessor gets twice its share of the memory by them if that takes
/// 0.8 µs: an estimate, not measured.
inline constexpr int64_t kLongestWholeColumn = 8192, kSharesOfWholeColumns = 2;
/// Elements of a matrix whose columns are summed in two orders, each by other workgroups: 32 MiB stay in the cache of 50 MB of an H100.
inline constexpr int64_t kMostReordered = int64_t{1} << 23;
/// Tensors that the kernel of both orders binds, and some more: keys and values with biases, gains, angles and the vector.
inline constexpr uint32_t kBindingsOfReordered = 16;
/// How many fewer rows a part must have than its column for a second stage to be worth its level: 32 for each of 16 lanes.
inline constexpr int64_t kLeastSavedRows = 512;
/// Elements of a part of a product that takes tiles of 128 x 128, whose sums are written and read once more for each part.
inline constexpr int64_t kShortestQuadPart = 1024;
/// Workgroups per unit of tiles of 64 x 64 in a product whose inner axis is cut into parts, and parts: the gradients of weights in a
/// convolution have few tiles and up to 10^5 elements along the inner axis, and other products wait beside them in the same dispatch. With
/// 2 parts, 64 x 576 with an inner axis of 65 536 takes part in kernels of 10 TFLOP/s. Other numbers were not measured.
inline constexpr int64_t kMatrixGroupsPerUnit = 5, kMostMatrixParts = 64;
/// The same of tiles for few rows in 16 bits, whose sums are small: workgroups per unit, and elements of a part. Such a workgroup waits 1.3
/// us for each step along the inner axis of 8B's products on an H200, alone or beside three others: 32 rows by [4096, 14336] take 85 us
/// with 448 workgroups for two such products, and by [14336, 4096] 79 us with 256 for one.
inline constexpr int64_t kFewRowGroupsPerUnit = 4, kShortestFewRowPart = 256;
/// More parts make the second stage longer than the first one saves: 16 partial sums are read in one round.
inline constexpr int64_t kMostParts = 16;
/// Elements of a part that one register sums where a device forces a split: a longer sum loses bits.
inline constexpr int64_t kLongestPart = 16384;
/// A shorter part that does not divide evenly stays whole: asking for each element whether there is one costs more than a part saves.
inline constexpr int64_t kLongestUneven = 16384;
/// Devices with fewer units are busy with the workgroups of one stage.
inline constexpr int64_t kFewUnits = 8;
/// Multiplications from which a product with a vector is a sum by rows or columns. The matrix is read once either way, and tiles would need
/// a second level for the parts of its inner axis.
inline constexpr int64_t kLeastThinProducts = int64_t{1} << 16;
/// Rows of such a sum by rows: a workgroup has one at least, and the inner axis of a product is cut where there are few.
inline constexpr int64_t kLeastThinRows = 256;
/// The same where the matrix is stored in fewer bits and its rows have at most so many elements.
inline constexpr int64_t kLeastWidenedRows = 64, kLongestWidenedRow = 4096;
/// Elements of a matrix up to which sums by rows take the scale of a norm beside them. On an H200 the head of 128 256 x 2048 takes 126 us
/// with it and 120 without, and the level of the norm 4.
inline constexpr int64_t kMostScaledBeside = int64_t{1} << 25;
/// Rows and columns of the smallest tile that a product is cut into.
inline constexpr int64_t kSmallestTile = 16;

// Workgroups (the choosers, mergeDispatches).

/// Lanes of a full workgroup. Row kernels of 128, 256 and 512 lanes are within 1 % of each other; devices allow at least 256.
inline constexpr int64_t kFullWorkgroup = 256;
/// The same of a long map by vectors. gelu of 2^24 elements is 3 % faster than with 512.
inline constexpr int64_t kVectorWorkgroup = 128;
/// Lanes below which a workgroup wastes hardware: two subgroups of 32, or one of 64.
inline constexpr int64_t kLeastWorkgroup = 64;
/// Elements side by side that an invocation of a map loads and stores at once: 16 bytes of f32, the widest access of GPUs. Add of 2^25
/// elements: 3013 GB/s, with single elements in strips 2790.
inline constexpr int64_t kVectorElements = 4;
/// On CPU drivers, elements from which maps take vectors (on lavapipe 1.15 to 1.45 times as fast, on the reference 1.1 to 1.6 times) and
/// sums of few columns more lanes (4096 x 16: 2.7 and 10 times). Kernels of fewer elements are better merged with others.
inline constexpr int64_t kManyElementsCpu = 65536;
/// The bytes of such a load or store, and the most elements: of bytes it would be 16, which are long bodies. Long maps that read several
/// tensors take half of them: add of 2^25 elements takes 134.4 µs in f32 (with 16 bytes 136.1) and 69.6 in bf16 (70.5).
inline constexpr int64_t kVectorBytes = 16, kMostVectorElements = 8;
/// Nodes of such a body. It stands in the kernel once for each of the elements.
inline constexpr size_t kVectorBody = 128;
/// Elements from which a map of a short body has several per invocation, and how many. Then memory decides, and more loads have to be under
/// way than the invocations that fit have with one each. Measured in GB/s with 1, 2, 4 and 8: add of 2^22 elements 2270, 2650, 2790, 2800;
/// exp of 2^25 570, 800, 1510, 1570.
inline constexpr int64_t kManyElements = int64_t{1} << 22, kElementsPerLane = 4;
/// Nodes of such a body. It stands in the kernel once for each of the elements, and again for the last workgroup.
inline constexpr size_t kShortBody = 16;
/// Workgroups per unit that keep it busy while some wait for memory: 4 of 10 KiB share the 48 KiB of workgroup memory of one
/// multiprocessor.
inline constexpr int64_t kGroupsPerUnit = 4;
/// The same for sums by columns, whose workgroups are short.
inline constexpr int64_t kShortGroupsPerUnit = 16;
/// Workgroup memory of a kernel of which only one or two workgroups share a unit. Sums of columns that were merged with such a product ran
/// as few at a time: 370 µs together on an H100, where the product takes 266 and the sum 36.
inline constexpr uint64_t kLargeWorkgroupBytes = 16384;
/// Columns of a row from which the lanes of a whole workgroup share it, where there are few rows: as many as a full workgroup has.
inline constexpr int64_t kLongRow = 256;
/// Lanes that share a row where there are many rows: a subgroup, whose lanes need no barrier on most GPUs.
inline constexpr int64_t kLanesPerRow = 32;
/// Lanes of a workgroup of short rows. Interpreting CPU drivers want fewer.
inline constexpr int64_t kRowLanesGpu = 128, kRowLanesCpu = 64;
/// Columns that a CPU driver sums side by side: two cache lines of each row.
inline constexpr int64_t kColumnsCpu = 32;
/// Columns side by side in memory that a workgroup sums at least, on GPUs: 64 bytes, two sectors.
inline constexpr int64_t kColumnsGpu = 16;
/// Invocations that share a column where there are few columns and workgroups may be as large, and rows that each loads before it adds
/// the first of them.
inline constexpr int64_t kMostLanesPerColumn = 64, kRowsInFlightOfFew = 8;
/// Neighbours of 8 bytes in a workgroup that sums up few long columns: 32 bytes, a sector, and 128 where that leaves a workgroup for nearly
/// every unit. On an H100, bf16: 8192 x 2048 in 18.5 µs by 1024 invocations (20.6 by 512), twice 2048 x 8192 in 27.6 with 128 bytes (28.8
/// with 64); with 1024 invocations and several sums in each, 896 x 896 takes 11.0 in place of 8.8.
inline constexpr int64_t kNarrowColumns = 4, kWideColumns = 16, kLargestWorkgroup = 1024;
/// Values of a column that one invocation reads after the barrier, at most, and workgroup memory that all of them may take: four such
/// workgroups share a multiprocessor.
inline constexpr int64_t kMostValuesPerColumn = 32, kColumnBytes = 12288;
/// Rows that an invocation loads before it adds the first of them, in sums by columns. A probe with 4 rows of vectors in flight made 2804
/// GB/s at 8192 x 4096.
inline constexpr int64_t kRowsInFlight = 4;

/// Operations of an element op, and results of a product, from which it stays out of the product's stores on devices with matrix units.
/// H100, 16384 x 1536 results along 384, bf16: with gelu 220 us and with its gradient 310, where the product alone takes 103 and memory 36
/// to 52.
inline constexpr uint32_t kHeavyOperations = 50;
inline constexpr int64_t kHeavyApart = int64_t{1} << 22;

// Rows that stay in registers (one read per element; softmax of 8192 x 4096: 2938 GB/s, by three loops over memory 946; of 256 x 512 2.4
// times as fast as loops on lavapipe and 3 times on the reference, with as many elements per lane as can be held).

/// Elements of a row per lane that are wanted, by the columns of a row. 16 x 256 lanes, 8 x 512 and 32 x 128 are within 1 % of each other
/// at 4096; of short rows, 4 lanes with 4 elements, 8 with 8 and 32 with 16 were the fastest at 16, 64 and 512 columns.
struct HeldElements {
  int64_t columns, elements;
};
inline constexpr std::array kHeldElements{HeldElements{256, 16}, HeldElements{64, 8}, HeldElements{0, 4}};
/// Registers decide what fits: 128 per invocation where 512 of them are a workgroup. Elements per lane, and those of all inputs as large as
/// the rows; as many again may be computed and kept.
inline constexpr int64_t kMostHeld = 32, kMostHeldOfInputs = 64;
/// Lanes of such a row: more did not help (1024: 2680 to 2750 GB/s).
inline constexpr int64_t kMostHeldLanes = 512;
/// Elements of a matrix in 16 bits from which a row that is multiplied by a vector has at most so many lanes: 4096 rows of 14336 take
/// 34.0 us on an H200 with 256 lanes and 38.0 with 512, 2048 rows of 8192 12.2 and 14.2.
inline constexpr int64_t kLargeMatrix = int64_t{1} << 23, kLanesOfLargeMatrix = 256;
/// Rows that lanes have at once where these read something in common: a product of 128 256 rows of 4096 in bf16 takes 253 us on an H200
/// with four, and 300 with one; one of 4096 rows 13.5 with four and 12.8 with two, so four want more workgroups per unit; 4096 rows of
/// 14336 take 31.4 with two, and 33.4 with one.
inline constexpr int64_t kMostRowsPerLane = 4, kGroupsOfManyRowsPerUnit = 8;
/// Operations times elements per lane: the body stands in the kernel once for each element.
inline constexpr int64_t kMostHeldText = 2048;
/// Workgroups per unit that stay and go over one row after the other, with sums by columns in their registers; rows from which that is
/// worth it; columns that they can hold. Gradient of layer_norm at 8192 x 4096 with 264 workgroups of 512 on 132 units: 2689 GB/s; with
/// 528, 4 % less. Short rows have smaller workgroups, so more of them are needed until a unit has as many invocations: with 264 of 64,
/// 16384 x 384 gets 1000 GB/s.
inline constexpr int64_t kStayingGroupsPerUnit = 2, kMostStayingGroupsPerUnit = 8, kStayingInvocationsPerUnit = 1024;
inline constexpr int64_t kLeastRowsOfStaying = 4, kMostHeldColumns = 8192;
/// Elements of a row per lane there: the sums take registers too.
inline constexpr int64_t kHeldBesideSums = 8;

// Chains of rows (chainRows).

/// Rows of a workgroup at most: a power of two that leaves one workgroup for each unit. With more the device is full anyway, and levels are
/// no longer what counts.
inline constexpr int64_t kMostChainRows = 16;
/// Of what rows are multiplied by, as much as 256 invocations load with 16 loads under way each.
inline constexpr int64_t kChainTile = 64, kLeastChainTile = 8, kChainLoads = 16;
/// The share of a unit's multiplications that a product of few rows gets. It waits for its tiles and has few sums per invocation. A guess:
/// the tiled product of small tiles makes 20 of 47 TFLOP/s.
inline constexpr double kChainRate = 0.4;
/// Seconds of a tile at least, however few rows there are, and of the shortest inner axis as a share of it. The tiles of chains with one
/// row per workgroup take about 0.5 us on an H200, but a level that is saved also saves the ramp of a kernel: with this number products of
/// 16 tiles may be in chains, and all samples but digit-canvas (35.1 us and 33.7) are faster than without chains; with 0.35 they may not,
/// and addition takes 264 us in place of 242.
inline constexpr double kChainTileSeconds = 0.15e-6;
inline constexpr double kLeastChainTurn = 0.25;
/// Groups of a chain, which bound its text, and tensors that it may bind. With few bindings chains would end after the first norm.
inline constexpr size_t kMostChained = 24;
inline constexpr uint32_t kBindingsOfChains = 16;

/// Seconds of a product of so many rows, [rows, inner] times [inner, columns], by one unit.
inline double secondsOfUnit(int64_t rows, int64_t inner, int64_t columns, const program::DeviceProfile& profile) {
  const double rate = ratesOf(profile).operations_per_second / 2 / profile.parallel_units;
  const int64_t strips = (columns + kChainTile - 1) / kChainTile;
  const double tiles = static_cast<double>(strips) * std::max(static_cast<double>(inner) / kChainTile, kLeastChainTurn);
  return std::max(static_cast<double>(rows * inner * columns) / (kChainRate * rate), tiles * kChainTileSeconds);
}

/// Elements of a line that one lane scans.
inline constexpr int64_t kScannedPerLane = 4;
/// Elements of a line that a lane combines at least where it shares the line with more than a subgroup or two.
inline constexpr int64_t kFoldedPerLane = 16;
/// Rows that are added to one segment, by one part: if the indices are spread evenly.
inline constexpr int64_t kScatteredPerPart = 4;
/// Segments times slices from which the index of a sum by segments is sorted first: without that, each segment looks through all of it,
/// 16 indices in about a nanosecond, and sorting 8192 of them takes 14 dispatches. Of a longer index, ordered sums are not made.
inline constexpr int64_t kLeastSorted = int64_t{1} << 24, kLongestSorted = 32768;
/// An inner axis of a product up to which it is an outer product: tiles would be loaded for nothing.
inline constexpr int64_t kOuterProduct = 2;

/// Tiles of products on GPUs, the largest first; the first one that gives every unit a workgroup is taken. A probe made 31 TFLOP/s at
/// 1024^3 with tiles of 64 x 64, which are 256 workgroups, and 20 with tiles of 128 x 128, which are 64 for 132 multiprocessors. Smaller
/// ones are for the products of small models, where the number of workgroups decides. 16 of the inner axis: two tiles of 64 take 8 KiB of
/// workgroup memory, which leaves room for five other workgroups on a multiprocessor.
struct Tile {
  int64_t m, n, k, thread_m, thread_n;  ///< of a workgroup; results of one invocation
};
inline constexpr std::array kTiles{Tile{64, 64, 16, 4, 4}, Tile{32, 64, 16, 4, 4}, Tile{32, 32, 16, 2, 4}, Tile{16, 32, 16, 2, 2},
                                   Tile{16, 16, 16, 2, 2}};

/// Tiles of products whose operands are read by quads, the largest first: the first one that gives nearly every unit a workgroup, else
/// the last. In TFLOP/s at 4096^3: 45.5; with tiles of 128 x 256 45.8, of 64 x 128 34.6, with an inner axis of 32 31.9, and with two tiles
/// in workgroup memory, of which one is filled while the other is multiplied, 40.9.
struct QuadTile : Tile {
  int64_t slices;  ///< invocations that share a sum
};
inline constexpr std::array kQuadTiles{QuadTile{{128, 128, 16, 8, 8}, 1}, QuadTile{{128, 64, 16, 8, 8}, 2}, QuadTile{{32, 64, 16, 8, 4}, 4},
                                       QuadTile{{16, 32, 16, 4, 4}, 8}};
/// Those that `lockstep tune` measures.
inline constexpr std::array kMeasuredQuadTiles{
    QuadTile{{128, 128, 16, 8, 8}, 1}, QuadTile{{128, 256, 16, 8, 8}, 1}, QuadTile{{128, 64, 16, 8, 8}, 1},
    QuadTile{{128, 64, 16, 8, 8}, 2},  QuadTile{{64, 128, 16, 8, 8}, 2},  QuadTile{{64, 64, 16, 8, 8}, 2},
    QuadTile{{64, 64, 16, 8, 4}, 2},   QuadTile{{32, 64, 16, 8, 4}, 4},   QuadTile{{64, 32, 16, 8, 4}, 4},
    QuadTile{{32, 64, 16, 4, 4}, 2},   QuadTile{{32, 32, 16, 4, 4}, 4},   QuadTile{{16, 32, 16, 4, 4}, 8},
    QuadTile{{32, 16, 16, 4, 4}, 8}};
/// Multiplications from which they are worth their longer text.
inline constexpr int64_t kLeastQuadProducts = int64_t{1} << 22;
/// Workgroups per unit that fill a device: 128 for the 132 units of an H100 do.
inline constexpr double kNearlyEvery = 0.9;

/// Tiles of products by matrix units, the largest first: the first one that gives nearly every unit a workgroup. For f32 in two parts the
/// first makes 98 TFLOP/s at 4096^3 on an H200 and the second 51 at 1024^3. Where not even the last one fills the device, plain f32 by
/// quads is faster.
struct MatrixTile {
  int64_t m, n;          ///< results of a workgroup
  int64_t sub_m, sub_n;  ///< of a subgroup
};
inline constexpr std::array kSplitTiles{MatrixTile{128, 128, 64, 32}, MatrixTile{128, 64, 32, 32}, MatrixTile{64, 64, 32, 32}};
/// Of 16 bits: products of 512 take 7.2 us by the last one on an H200, and 11.7 by that of 64 x 64; of 1024, 19.0 us by 64 x 128, and 22.1.
inline constexpr std::array kHalfTiles{MatrixTile{128, 256, 64, 64}, MatrixTile{128, 128, 64, 64}, MatrixTile{64, 128, 32, 32},
                                       MatrixTile{64, 64, 32, 32}, MatrixTile{32, 64, 16, 32}};
/// Of at most kNarrow columns or rows, as products of convolutions with few channels have them: others would leave half of their tile
/// empty. Of rows, tiles with fewer columns fill a device that wider ones do not: in bf16 a token of 32 sequences of 0.5B takes 3.4 ms by
/// them on an H200, where plain f32 took 5.2.
inline constexpr int64_t kNarrow = 32;
inline constexpr std::array kFewColumnTiles{MatrixTile{128, 32, 32, 32}};
inline constexpr std::array kFewRowTiles{MatrixTile{32, 128, 32, 32}, MatrixTile{32, 64, 16, 32}, MatrixTile{32, 32, 16, 16}};
inline constexpr std::array kMeasuredMatrixTiles{MatrixTile{128, 256, 64, 64}, MatrixTile{128, 128, 64, 64}, MatrixTile{128, 128, 64, 32},
                                                 MatrixTile{64, 128, 32, 64},  MatrixTile{128, 64, 32, 32},  MatrixTile{64, 128, 32, 32},
                                                 MatrixTile{64, 64, 32, 32},   MatrixTile{32, 64, 16, 32},   MatrixTile{32, 32, 16, 16},
                                                 MatrixTile{128, 32, 32, 32},  MatrixTile{32, 128, 32, 32}};
/// Results that the tiles cover, per one that is wanted, before smaller ones are better: 384 columns by 256 take 1.33 times the work.
inline constexpr double kMostCovered = 1.2;
/// The most of the inner axis in one tile: sums by the units are that long, and rounded as f32 beyond.
inline constexpr int64_t kMatrixDepth = 32;
/// Of tiles of few rows whose operands are one number of 16 bits each, which the units add up in any case: on an H200 a token of 32
/// sequences of 0.5B takes 2562 us by 64, 2775 by 32 and 3192 by 128.
inline constexpr int64_t kFewRowDepth = 64;
/// A shorter inner axis is left to plain f32: every product makes a round more than it has tiles.
inline constexpr int64_t kLeastSplitDepth = 128;
/// Multiplications per unit of the device from which matrix units are worth their longer kernels: 512^3 on an H100.
inline constexpr int64_t kLeastMatrixProducts = int64_t{1} << 18;

/// Tiles that `lockstep tune` measures: those above, longer steps along the inner axis, and tiles with more results per invocation, which
/// win where there are enough workgroups for them.
inline constexpr std::array kMeasuredTiles{
    Tile{128, 128, 16, 8, 8}, Tile{128, 128, 8, 8, 8}, Tile{128, 64, 16, 8, 4}, Tile{64, 128, 16, 4, 8}, Tile{64, 64, 16, 8, 8},
    Tile{64, 64, 16, 8, 4},   Tile{64, 64, 16, 4, 4},  Tile{64, 64, 32, 4, 4},  Tile{32, 64, 16, 4, 4},  Tile{32, 64, 32, 4, 4},
    Tile{32, 32, 16, 2, 4},   Tile{32, 32, 32, 2, 2},  Tile{16, 64, 16, 2, 4},  Tile{16, 32, 16, 2, 2},  Tile{16, 32, 32, 2, 2},
    Tile{16, 16, 32, 1, 2},   Tile{16, 16, 16, 2, 2}};

// What else `lockstep tune` measures.

/// Lanes of the workgroups of maps, rows and columns.
inline constexpr std::array<int64_t, 4> kMeasuredWorkgroups{64, 128, 256, 512};
/// Elements of the largest tensor of such work: the memory of fewer takes less than half a dispatch, and a plan of their own would keep
/// small kernels from being merged.
inline constexpr int64_t kLeastMeasured = 65536;
static_assert(2 * kLeastMeasured * kElementBytes / kGpu.bytes_per_second < kGpu.dispatch_seconds);

// Products on CPU drivers: rows of A are read uniformly by a workgroup, columns of B by its lanes.

/// Results of one invocation in a column: with those of a row, as many sums as there are vector registers.
inline constexpr int64_t kRegisterRows = 8;
/// Results of one invocation in a row. A driver with a known vector width loads each lane by itself, so it takes many; one without (an
/// interpreter) wants more lanes in place of them.
inline constexpr int64_t kVectorColumns = 8, kPlainColumns = 2;
/// Lanes of a workgroup: at least a vector of eight; where no width is known, as many as fill an interpreter's inner loop.
inline constexpr int64_t kLeastLanesCpu = 8, kMostLanesCpu = 64;
/// Columns from which an invocation takes more than one: less would leave lanes without a column.
inline constexpr int64_t kColumnsBeforeSharing = 32;

}  // namespace lockstep::passes::cost
