// SPDX-License-Identifier: Apache-2.0
// Weights with fewer bits than f32: what they lose is bounded by their scales, what a device keeps of them is small, and all devices agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/backend.h"
#include "frontend/io/sealed.h"
#include "frontend/llm/generator.h"
#include "frontend/llm/quantise.h"
#include "frontend/llm/stored_weights.h"
#include "frontend/lockstep.h"
#include "tests/frontend/io/scratch.h"
#include "tests/llm/tiny.h"

namespace lockstep::llm {
namespace {

using nn::SumAxis;
using nn::WeightFormat;
using nn::WeightKind;
using testing::codeOf;
using testing::configOf;
using testing::randomValues;
using testing::tinyJson;

constexpr const char* kSmallFormats[] = {"f16", "bf16", "int8", "int4", "int4:128"};

WeightFormat formatOf(std::string_view name) { return WeightFormat::parse(name).orThrow(); }

/// One layer alone.
struct OneLinear : Module {
  OneLinear(int64_t in, int64_t out, const WeightFormat& format) : layer(*this, "layer", in, out, {.bias = false, .format = format}) {}
  nn::Linear layer;
};
struct OneTable : Module {
  OneTable(int64_t rows, int64_t width, const WeightFormat& format) : table(*this, "table", rows, width, {.format = format}) {}
  nn::Embedding table;
};

std::vector<float> normals(uint64_t seed, int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(random::normal(seed, 0, static_cast<uint64_t>(i))));
  return values;
}

/// What a device is given of a matrix, by the names of its layer.
io::TensorFile kept(const WeightFormat& format, SumAxis sums, const std::string& name, const std::vector<float>& values, int64_t rows,
                    int64_t columns) {
  io::TensorFile file;
  if (format.bits() == 0) {
    const auto type = format.kind == WeightKind::BF16 ? io::ElementType::BF16 : io::ElementType::F16;
    file.tensors.emplace(name, io::Array::from(type, {rows, columns}, std::vector<double>(values.begin(), values.end())));
    return file;
  }
  QuantizedMatrix made = quantise(format, sums, values, rows, columns);
  file.tensors.emplace(name + "_words", std::move(made.words));
  file.tensors.emplace(name + "_scales", std::move(made.scales));
  return file;
}

/// Element k of sum n, read from the bits.
double elementOf(const WeightFormat& format, const QuantizedMatrix& matrix, int64_t n, int64_t k) {
  const int64_t bits = format.bits(), per_word = 32 / bits;
  const auto words = static_cast<size_t>(matrix.words.shape[1]), groups = static_cast<size_t>(matrix.scales.shape[1]);
  const auto row = static_cast<size_t>(n), column = static_cast<size_t>(k);
  const auto word = static_cast<uint32_t>(matrix.words.at(row * words + column / static_cast<size_t>(per_word)));
  const int64_t field = word >> (bits * (k % per_word)) & ((1U << bits) - 1), half = int64_t{1} << (bits - 1);
  const size_t group = format.group > 0 ? column / static_cast<size_t>(format.group) : 0;
  return static_cast<double>(field < half ? field : field - 2 * half) * matrix.scales.at(row * groups + group);
}
/// Half a scale, or half a step of a float of 16 bits.
double errorOf(const WeightFormat& format, const QuantizedMatrix& matrix, int64_t n, int64_t k, double w) {
  if (format.kind == WeightKind::BF16) return std::abs(w) * 0x1p-8;
  if (format.kind == WeightKind::F16) return std::abs(w) * 0x1p-11 + 0x1p-25;
  const size_t group = format.group > 0 ? static_cast<size_t>(k / format.group) : 0;
  return matrix.scales.at(static_cast<size_t>(n * matrix.scales.shape[1]) + group) / 2;
}

TEST(Formats, names_are_read_and_written) {
  for (const char* name : {"f32", "f16", "bf16", "int8", "int4", "int4:128"}) EXPECT_EQ(toString(formatOf(name)), name);
  for (const char* name : {"", "int2", "int4:64", "int4:32", "INT8", "fp16"})
    EXPECT_EQ(codeOf([&] { (void)formatOf(name); }), "weight_format.name") << name;
}

TEST(Quantise, differs_by_half_a_scale_at_most) {
  for (const char* name : {"int8", "int4", "int4:128"}) {
    const WeightFormat format = formatOf(name);
    // Rows that no group and no word divides, one row, one column.
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{33, 5}, {1, 7}, {5, 1}, {300, 3}, {64, 64}}) {
      for (const SumAxis sums : {SumAxis::First, SumAxis::Last}) {
        std::vector<float> values = normals(3, rows * columns);
        values[values.size() / 2] *= 50;
        const QuantizedMatrix made = quantise(format, sums, values, rows, columns);
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t column = 0; column < columns; ++column) {
            const int64_t n = sums == SumAxis::First ? column : row, k = sums == SumAxis::First ? row : column;
            const double w = values[static_cast<size_t>(row * columns + column)];
            // The division may round to the tie of a quotient just beside it.
            EXPECT_LE(std::abs(elementOf(format, made, n, k) - w), errorOf(format, made, n, k, w) * (1 + 1e-12)) << name << rows;
          }
        }
      }
    }
  }
}

TEST(Quantise, ties_go_to_even_and_the_largest_fills_the_range) {
  // A scale of 1: halves lie between whole numbers.
  const QuantizedMatrix made = quantise(formatOf("int4"), SumAxis::Last, std::vector<float>{7, 0.5F, 1.5F, -0.5F, -2.5F, -7, 3, 0}, 1, 8);
  EXPECT_EQ(made.scales.toFloats(), std::vector<float>{1});
  const std::vector<double> want{7, 0, 2, 0, -2, -7, 3, 0};
  for (int64_t k = 0; k < 8; ++k) EXPECT_EQ(elementOf(formatOf("int4"), made, 0, k), want[static_cast<size_t>(k)]) << k;
  const QuantizedMatrix bytes = quantise(formatOf("int8"), SumAxis::Last, std::vector<float>{-127, 126.5F, 0.5F}, 1, 3);
  EXPECT_EQ(bytes.scales.toFloats(), std::vector<float>{1});
  EXPECT_EQ(elementOf(formatOf("int8"), bytes, 0, 0), -127);
  EXPECT_EQ(elementOf(formatOf("int8"), bytes, 0, 1), 126);
}

TEST(Quantise, zeros_and_numbers_next_to_zero_have_no_scale) {
  for (const float small : {0.0F, 1e-40F, 1e-45F}) {
    const QuantizedMatrix made = quantise(formatOf("int4"), SumAxis::Last, std::vector<float>(40, small), 1, 40);
    EXPECT_EQ(made.scales.toFloats(), std::vector<float>(2)) << small;
    for (int64_t k = 0; k < 40; ++k) EXPECT_EQ(elementOf(formatOf("int4"), made, 0, k), 0);
  }
}

/// |dy| is at most the sum of |x| times the error of each element, and of roundings of the f32 sums.
TEST(Weights, a_product_is_as_near_as_its_scales_say) {
  for (const char* device : {"reference", "vulkan"}) {
    if (!chooseDevice(device).ok()) continue;
    for (const char* name : kSmallFormats) {
      const WeightFormat format = formatOf(name);
      for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{{33, 5}, {1, 3}, {160, 9}, {257, 1}}) {
        constexpr int64_t kRows = 3;
        auto net = forward<OneLinear>({.inputs = {{"x", f32(kRows, in)}},
                                       .forward = [](const OneLinear& model, const Inputs& given) { return model.layer(given["x"]); },
                                       .device = device,
                                       .seed = 0,
                                       .make = [&] { return std::make_unique<OneLinear>(in, out, format); }});
        std::vector<float> w = normals(11, in * out);
        for (int64_t k = 0; k < in; ++k) w[static_cast<size_t>(k * out)] = 0;  // a row of zeros
        const std::vector<float> x = normals(12, kRows * in);
        net.write(kept(format, SumAxis::First, "layer.W", w, in, out));
        const std::vector<float> y = net.run({{"x", x}}).output.floats();
        QuantizedMatrix made;
        if (format.bits() > 0) made = quantise(format, SumAxis::First, w, in, out);
        for (int64_t row = 0; row < kRows; ++row) {
          for (int64_t n = 0; n < out; ++n) {
            double want = 0, bound = 0, size = 0;
            for (int64_t k = 0; k < in; ++k) {
              const double one = x[static_cast<size_t>(row * in + k)], weight = w[static_cast<size_t>(k * out + n)];
              want += one * weight;
              bound += std::abs(one) * errorOf(format, made, n, k, weight);
              size += std::abs(one) * (std::abs(weight) + errorOf(format, made, n, k, weight));
            }
            EXPECT_LE(std::abs(y[static_cast<size_t>(row * out + n)] - want), bound + static_cast<double>(in + 4) * 0x1p-23 * size)
                << device << " " << name << " " << in;
            if (n == 0) {
              EXPECT_EQ(y[static_cast<size_t>(row * out)], 0);
            }
          }
        }
      }
    }
  }
}

TEST(Weights, rows_of_a_table_are_those_that_a_product_reads) {
  constexpr int64_t kRows = 5, kWidth = 33;
  const std::vector<float> w = normals(21, kRows * kWidth);
  for (const char* device : {"reference", "vulkan"}) {
    if (!chooseDevice(device).ok()) continue;
    for (const char* name : kSmallFormats) {
      const WeightFormat format = formatOf(name);
      auto net = forward<OneTable>({.inputs = {{"ids", i32(2, 3)}, {"one", f32(kWidth, kWidth)}},
                                    .forward = [](const OneTable& model, const Inputs& given) -> Outputs {
                                      return {{"rows", model.table(given["ids"])},
                                              {"whole", model.table.W.tensor()},
                                              {"product", model.table.W.product(given["one"])}};
                                    },
                                    .device = device,
                                    .seed = 0,
                                    .make = [&] { return std::make_unique<OneTable>(kRows, kWidth, format); }});
      net.write(kept(format, SumAxis::Last, "table.W", w, kRows, kWidth));
      const std::vector<int32_t> ids{4, 0, 1, 1, 3, 2};
      std::vector<float> one(kWidth * kWidth);
      for (size_t i = 0; i < kWidth; ++i) one[i * kWidth + i] = 1;
      const ForwardResult result = net.run({{"ids", ids}, {"one", one}});
      const auto rows = result.outputs.get("rows").floats(), whole = result.outputs.get("whole").floats(),
                 product = result.outputs.get("product").floats();
      EXPECT_EQ(result.outputs.get("rows").shape().extents(), (std::vector<int64_t>{2, 3, kWidth}));
      for (size_t i = 0; i < ids.size(); ++i) {
        for (size_t k = 0; k < kWidth; ++k) {
          const auto row = static_cast<size_t>(ids[i]);
          EXPECT_EQ(rows[i * kWidth + k], whole[row * kWidth + k]) << device << " " << name;
          EXPECT_NEAR(product[k * kRows + row], whole[row * kWidth + k], 1e-6 * std::abs(whole[row * kWidth + k])) << device << " " << name;
          EXPECT_NEAR(whole[row * kWidth + k], w[row * kWidth + k], 0.5);
        }
      }
    }
  }
}

struct WithBias : Module {
  nn::Linear layer{*this, "layer", 40, 3, {.format = {.kind = WeightKind::Int4, .group = 32}}};
};

TEST(Weights, a_checkpoint_has_all_of_their_bits) {
  const auto loss = [](const WithBias& model, const Inputs& in) { return mean(square(model.layer(in["x"]))); };
  auto trainer = compile<WithBias>({.inputs = {{"x", f32(2, 40)}}, .loss = loss, .seed = 1, .device = "reference"});
  io::TensorFile checkpoint = trainer.checkpoint();
  const io::TensorFile bits = kept(formatOf("int4"), SumAxis::First, "layer.W", normals(4, 120), 40, 3);
  for (const auto& [name, array] : bits.tensors) checkpoint.tensors.insert_or_assign("buffer." + name, array);
  const lockstep::testing::ScratchDirectory scratch("weights");
  ASSERT_TRUE(io::writeSealed(scratch / "step.safetensors", checkpoint));
  const auto made = [] {
    return forward<WithBias>({.inputs = {{"x", f32(2, 40)}},
                              .forward = [](const WithBias& model, const Inputs& in) { return model.layer(in["x"]); },
                              .device = "reference",
                              .seed = 0});
  };
  auto loaded = made(), written = made();
  loaded.load(scratch / "step.safetensors");
  written.write(bits);
  const std::vector<float> x = normals(5, 80);
  const std::vector<float> y = written.run({{"x", x}}).output.floats();
  EXPECT_EQ(loaded.run({{"x", x}}).output.floats(), y);
  EXPECT_NE(y, std::vector<float>(6));
  // A bias learns beside a matrix that stays as it is.
  trainer.load(scratch / "step.safetensors");
  trainer.step({{"x", x}});
  EXPECT_EQ(trainer.checkpoint().tensors.at("buffer.layer.W_words"), bits.tensors.at("layer.W_words"));
  EXPECT_NE(trainer.download().at("layer.b"), std::vector<float>(3));
  // What does not fit is told before anything is written.
  io::TensorFile wrong;
  wrong.tensors.emplace("layer.W_words", io::Array::zeros(io::ElementType::I32, {3, 5}));
  EXPECT_EQ(codeOf([&] { written.write(wrong); }), "parameters.type");
  wrong.tensors.clear();
  wrong.tensors.emplace("layer.W", io::Array::zeros(io::ElementType::F32, {40, 3}));
  EXPECT_EQ(codeOf([&] { written.write(wrong); }), "parameters.unknown");
  written.write({.tensors = {{"layer.b", io::Array::fromFloats({3}, std::vector<float>{1, 2, 3})}}, .metadata = {}});
  const std::vector<float> shifted = written.run({{"x", x}}).output.floats();
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(shifted[i] - y[i], static_cast<float>(i % 3 + 1), 1e-5);
}

/// Wide enough that matrices are most of it.
LanguageConfig wideConfig(bool tied) {
  return configOf(fmt::format(R"({{"model_type": "llama", "vocab_size": 320, "hidden_size": 128, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 352, "max_position_embeddings": 64,
      "tie_word_embeddings": {}}})",
                              tied));
}

TEST(Weights, a_device_keeps_few_bytes_of_each) {
  struct Row {
    const char* format;
    double bytes;
  };
  for (const bool tied : {false, true}) {
    const LanguageConfig config = wideConfig(tied);
    const ParameterValues values = randomValues(config);
    const auto matrices = static_cast<double>(parameterCount(config) - 5 * 128);
    for (const Row& row : {Row{"f32", 4}, {"f16", 2}, {"bf16", 2}, {"int8", 1.05}, {"int4", 0.6}, {"int4:128", 0.53}}) {
      const Generator generator(config, values, {.device = "reference", .positions = 8, .chunk = 8, .weights = formatOf(row.format)});
      const ProgramFacts facts = generator.facts();
      // Norms, keys and values, what goes in and out, and what arenas are rounded up to.
      const double others = 4.0 * 5 * 128 + 2 * 2 * 4 * 16 * 64 + 40 * 256;
      EXPECT_LE(static_cast<double>(facts.planned_bytes - facts.workspace_bytes), row.bytes * matrices + others) << row.format << tied;
      EXPECT_GE(static_cast<double>(facts.planned_bytes), 0.5 * matrices);
      // No matrix becomes f32 on its way into a product: the smallest has 128 x 64 elements.
      uint64_t largest = 0;
      for (const PlannedBuffer& buffer : facts.temporaries) largest = std::max(largest, buffer.bytes);
      EXPECT_LT(largest, uint64_t{4 * 128 * 64}) << row.format << tied;
    }
  }
}

TEST(Weights, a_model_is_nearly_the_same_and_all_devices_agree) {
  const TokenList prompt{3, 1, 4, 1, 5, 9, 2};
  // Of logits, relative L2; rows of this model have few terms to even out what each loses.
  struct Row {
    const char *family, *format;
    DType cache;
    double bound;
  };
  const Row rows[] = {{"llama", "f16", DType::F16, 5e-3},
                      {"llama", "bf16", DType::BF16, 4e-2},
                      {"llama", "int8", DType::F32, 5e-2},
                      {"gemma2", "int4:128", DType::F16, 0.5},
                      {"mamba", "int4", DType::F32, 0.5}};
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("{} {}", row.family, row.format));
    const LanguageConfig config = configOf(tinyJson(row.family));
    const ParameterValues values = randomValues(config);
    const auto run = [&](const char* device, bool plain) {
      GeneratorOptions options{.device = device, .positions = 16, .chunk = 1};
      if (!plain) {
        options.weights = formatOf(row.format);
        options.cache = row.cache;
      }
      Generator generator(config, values, options);
      std::vector<float> logits = generator.feed({prompt}, true).logits[0];
      return std::pair(std::move(logits), generator.generate({prompt}, {.tokens = 6, .stop_at_end = false})[0]);
    };
    const std::vector<float> exact = run("reference", true).first;
    const auto [logits, tokens] = run("reference", false);
    double difference = 0, size = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      difference += std::pow(static_cast<double>(logits[i]) - static_cast<double>(exact[i]), 2);
      size += std::pow(static_cast<double>(exact[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference / size), row.bound);
    EXPECT_GT(difference, 0);
    if (chooseDevice("vulkan").ok()) {
      EXPECT_EQ(run("vulkan", false).second, tokens);
    }
  }
}

TEST(Weights, a_cache_of_16_bits_is_kept_and_goes_on) {
  const LanguageConfig config = configOf(tinyJson("qwen3"));
  const ParameterValues values = randomValues(config);
  for (const auto& [device, cache] :
       {std::pair("reference", DType::BF16), std::pair("reference", DType::F16), std::pair("vulkan", DType::BF16)}) {
    if (!chooseDevice(device).ok()) continue;
    const GeneratorOptions options{.device = device, .sequences = 2, .positions = 12, .chunk = 4, .cache = cache};
    Generator generator(config, values, options);
    generator.feed({{1, 2, 3, 4, 5}, {7, 8}});
    const SequenceState kept = generator.save(0);
    const Fed there = generator.feed({{6, 7}, {}}, true);
    generator.restore(1, kept);
    EXPECT_EQ(generator.feed({{}, {6, 7}}, true).logits[1], there.logits[0]);
    Generator wide(config, values, {.device = device, .sequences = 2, .positions = 12, .chunk = 4});
    EXPECT_LT(generator.facts().planned_bytes, wide.facts().planned_bytes);
    wide.feed({{1, 2, 3, 4, 5}, {}});
    const Fed exact = wide.feed({{6, 7}, {}}, true);
    EXPECT_NE(exact.logits[0], there.logits[0]);
    for (size_t i = 0; i < exact.logits[0].size(); ++i) EXPECT_NEAR(exact.logits[0][i], there.logits[0][i], 0.1);
  }
  EXPECT_EQ(codeOf([&] { Generator(config, values, {.device = "reference", .cache = DType::I32}); }), "language_model.options");
  LanguageConfig odd = config;
  odd.attention.head_width = 7;
  odd.ropes.clear();
  EXPECT_EQ(codeOf([&] { Generator(odd, randomValues(odd), {.device = "reference", .cache = DType::F16}); }), "language_model.options");
}

TEST(Weights, numbers_that_a_format_lacks_are_refused_by_name) {
  const LanguageConfig config = configOf(tinyJson("llama"));
  const auto refused = [&](const char* parameter, float value, const char* format) -> Diagnostic {
    ParameterValues values = randomValues(config);
    values.at(parameter)[5] = value;
    try {
      (void)Generator(config, values, {.device = "reference", .positions = 4, .weights = formatOf(format)});
    } catch (const Error& error) {
      return error.diagnostics()[0];
    }
    return {};
  };
  for (const char* format : kSmallFormats) {
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      const Diagnostic diagnostic = refused("layers.1.mlp.up.W", value, format);
      EXPECT_EQ(diagnostic.code, "language_weights.value") << format;
      EXPECT_NE(diagnostic.message.find("'layers.1.mlp.up.W' has"), std::string::npos) << diagnostic.message;
      EXPECT_NE(diagnostic.message.find("at [0, 5]"), std::string::npos) << diagnostic.message;
      EXPECT_FALSE(diagnostic.remedy.empty());
    }
    // Vectors stay as they are.
    const Diagnostic vector = refused("layers.1.norm2.g", std::numeric_limits<float>::infinity(), format);
    EXPECT_EQ(vector.code, "language_weights.value") << format;
    EXPECT_EQ(vector.message, "'layers.1.norm2.g' has inf at [5]");
    EXPECT_EQ(refused("layers.1.norm2.g", 3e38F, format).code, "") << format;
    EXPECT_EQ(refused("layers.1.mlp.up.W", 7e4F, format).code, std::string_view(format) == "f16" ? "language_weights.value" : "") << format;
  }
  EXPECT_EQ(refused("layers.1.mlp.up.W", 3.4e38F, "bf16").code, "language_weights.value");
  EXPECT_NE(refused("layers.1.mlp.up.W", 7e4F, "f16").remedy.find("bf16"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::llm
