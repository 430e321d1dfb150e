// SPDX-License-Identifier: Apache-2.0
// MBJS files, the weights of sequence models as MambaCode.js keeps them. Fields are little-endian u32 unless noted: 0x4D424A53; the
// version; from version 2 on the number of layers and a byte for the kind of each, filled up to a multiple of 4 bytes; the number of
// tensors; the number of elements of each; then all elements, f32, in version 3 f16. In version 1 every layer is a Mamba1.
// There are no names, shapes or options in it: names are those of the table in mbjs.cpp, shapes follow from the numbers of elements.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/array.h"
#include "ir/support/result.h"

namespace lockstep::io {

/// As the bytes of a file count them.
enum class MbjsLayer : uint8_t { Mamba1, Mamba2, Mamba3, Attention };
std::string_view toString(MbjsLayer layer);  ///< "mamba1"

/// Tensors f32, matrices [out, in]: "embedding" [vocabulary, width], "final_norm" [width], and those of layer i as "layers.i.NAME":
///   Mamba1     wInProj [2 inner, width], bInProj, wConv [inner, taps], bConv, wXProj [rank + 2 states, inner], bXProj, wDtProj
///              [inner, rank], bDtProj, A_log [inner, states], D_vec [inner], wOutProj [width, inner], bOutProj, normWeight [width]
///   Mamba2     wInProj [mixed + heads, width], wConv [mixed, taps], bConv, A_log [heads], dt_bias, D_vec, wOutProj [width, inner],
///              normWeight [inner], preNormWeight [width]; mixed is inner and what b and c take
///   Mamba3     the same, with A_log [heads, 2]
///   Attention  wQKV [3 width, width], bQKV, wO [width, width], bO, normWeight [width], and with a feed-forward part wFfn1
///              [4 width, width], bFfn1, wFfn2 [width, 4 width], bFfn2
/// The first tap of a convolution meets the current element: the other way round than with PyTorch.
struct MbjsFile {
  uint32_t version = 3;
  std::vector<MbjsLayer> layers;
  std::map<std::string, Array, std::less<>> tensors;
  friend bool operator==(const MbjsFile&, const MbjsFile&) = default;
};

/// Elements of version 3 are read as IEEE halves, subnormal ones too, which MambaCode.js itself reads 16384 times too large (what it
/// trained after that and wrote again is lost). It cuts digits off where it writes them, so they are up to one unit in their last place too
/// small, and infinite where they were above 65504. Codes: mbjs.magic, mbjs.version (not 1, 2 or 3), mbjs.length (the file ends before what
/// its header says, or goes on after it), mbjs.layer (a kind above 3), mbjs.count (another number of tensors than its layers have),
/// mbjs.shape (a number of elements that makes no shape, or one that no layer of its kind has: inner is a multiple of the width and of the
/// heads, mixed is inner and an even number more, a multiple of 4 for Mamba3, and a convolution has two taps or more). `name` stands for
/// the file in messages.
Result<MbjsFile> parseMbjs(std::span<const std::byte> bytes, const std::string& name);
Result<MbjsFile> readMbjs(const std::filesystem::path& path);

/// The bytes of a file of its version, f16 rounded to nearest even. Codes: mbjs.version, also of version 1 for other layers than Mamba1;
/// mbjs.tensor (one is missing, or belongs to no layer), mbjs.shape, and mbjs.value for a number that f16 does not have.
Result<std::vector<std::byte>> formatMbjs(const MbjsFile& file);
/// Writes atomically.
Status writeMbjs(const std::filesystem::path& path, const MbjsFile& file);

}  // namespace lockstep::io
