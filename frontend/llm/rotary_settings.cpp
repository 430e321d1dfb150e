// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/rotary_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <string_view>
#include <utility>

namespace lockstep::llm {
namespace {

struct Scaled {
  RotaryConfig rotary;
  int64_t longest = 0;  ///< positions that it is for; 0: any number
};

struct Settings {
  double base = 10000, part = 1;  ///< `part` of a head turns
};

/// Keys without which a scaling of this type says nothing.
Status needed(ConfigReader& scaling, std::string_view type, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (scaling.find(key) == nullptr)
      return scaling.wrong(fmt::format("{} is missing", scaling.placeOf(key)), fmt::format("{} scaling needs it", type));
  }
  return Success{};
}

/// Long waves are stretched by the factor, short ones stay, and between the two there is a ramp (Llama 3.1).
Status scaleByWavelength(ConfigReader& scaling, const RotaryDefaults& defaults, RotaryConfig& rotary) {
  LS_CHECK(needed(scaling, "llama3", {"factor", "low_freq_factor", "high_freq_factor"}));
  LS_TRY(const double factor, scaling.number("factor", 0));
  LS_TRY(const double low, scaling.number("low_freq_factor", 0));
  LS_TRY(const double high, scaling.number("high_freq_factor", 0));
  LS_TRY(const double length, scaling.number("original_max_position_embeddings", static_cast<double>(defaults.context)));
  if (!(factor >= 1 && low > 0 && high > low && length > 0 && std::isfinite(factor) && std::isfinite(high) && std::isfinite(length)))
    return scaling.wrong(
        fmt::format("llama3 scaling with factor {}, low_freq_factor {}, high_freq_factor {} and a length of {}", factor, low, high, length),
        "factor is at least 1, low_freq_factor positive and below high_freq_factor");
  rotary.frequencies = rotary.radians();
  for (double& frequency : rotary.frequencies) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength < length / high) continue;
    const double ramp = wavelength > length / low ? 0 : (length / wavelength - low) / (high - low);
    frequency = (1 - ramp) * frequency / factor + ramp * frequency;
  }
  return Success{};
}

bool isPositive(double number) { return number > 0 && std::isfinite(number); }

/// Pairs that turn often within the original length stay, slow ones are stretched by the factor, and between the two there is a ramp
/// over the pairs (YaRN, Peng et al., 2023).
Status scaleByTurns(ConfigReader& scaling, const RotaryDefaults& defaults, Scaled& scaled) {
  const auto context = static_cast<double>(defaults.context);
  LS_TRY(const double length, scaling.number("original_max_position_embeddings", context, context));
  LS_TRY(const double factor, scaling.number("factor", context / length, context / length));
  LS_TRY(double fast, scaling.number("beta_fast", 0, 0.0));
  LS_TRY(double slow, scaling.number("beta_slow", 0, 0.0));
  if (fast == 0) fast = 32;
  if (slow == 0) slow = 1;
  LS_TRY(const bool whole, scaling.boolean("truncate", true));
  RotaryConfig& rotary = scaled.rotary;
  if (!isPositive(length) || !isPositive(factor) || !isPositive(fast) || !isPositive(slow) || rotary.base <= 1) {
    return scaling.wrong(fmt::format("yarn scaling with factor {}, beta_fast {}, beta_slow {}, a length of {} and a base of {}", factor,
                                     fast, slow, length, rotary.base),
                         "all are positive, and the base is above 1");
  }
  // The pair that turns so often.
  const auto pairOf = [&](double turns) {
    return static_cast<double>(rotary.dims) * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(rotary.base));
  };
  double first = pairOf(fast), last = pairOf(slow);
  if (whole) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(rotary.dims - 1));
  if (first == last) last += 0.001;
  rotary.frequencies = rotary.radians();
  for (size_t pair = 0; pair < rotary.frequencies.size(); ++pair) {
    const double ramp = std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
    rotary.frequencies[pair] *= ramp / factor + (1 - ramp);
  }
  const auto grown = [&](double by) { return factor <= 1 ? 1 : 0.1 * by * std::log(factor) + 1; };
  LS_TRY(const double some, scaling.number("mscale", 0, 0.0));
  LS_TRY(const double all, scaling.number("mscale_all_dim", 0, 0.0));
  const double its = some != 0 && all != 0 ? grown(some) / grown(all) : grown(1);
  LS_TRY(rotary.amplitude, scaling.number("attention_factor", its, its));
  return Success{};
}

/// Each pair has its factor, one set of them up to the original length and another one beyond it, which is not used here (LongRoPE, Ding
/// et al., 2024).
Status scaleByFactors(ConfigReader& scaling, const RotaryDefaults& defaults, Scaled& scaled) {
  const auto context = static_cast<double>(defaults.context);
  LS_TRY(const double said, scaling.number("original_max_position_embeddings", context, context));
  const double length = defaults.original > 0 ? static_cast<double>(defaults.original) : said;
  LS_TRY(const double factor, scaling.number("factor", context / length, context / length));
  LS_TRY(const std::vector<double> factors, scaling.numbers("short_factor"));
  LS_TRY(const std::vector<double> beyond, scaling.numbers("long_factor"));
  RotaryConfig& rotary = scaled.rotary;
  rotary.frequencies = rotary.radians();
  if (!(length > 1 && length <= context && isPositive(factor)))
    return scaling.wrong(fmt::format("longrope scaling with factor {} of {} positions to {}", factor, length, context),
                         "the factor is positive, and the original length at most max_position_embeddings");
  for (const std::vector<double>& list : {factors, beyond}) {
    if (list.size() != rotary.frequencies.size() || !std::ranges::all_of(list, isPositive))
      return scaling.wrong(fmt::format("short_factor and long_factor have {} and {} numbers for {} pairs", factors.size(), beyond.size(),
                                       rotary.frequencies.size()),
                           "each pair has a positive one");
  }
  for (size_t pair = 0; pair < factors.size(); ++pair) rotary.frequencies[pair] /= factors[pair];
  const double its = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(length));
  LS_TRY(rotary.amplitude, scaling.number("attention_factor", its, its));
  if (factors != beyond) scaled.longest = static_cast<int64_t>(length);
  return Success{};
}

/// `scaling` has rope_type (or type) and what belongs to it.
Status scaleAs(const std::string& type, ConfigReader& scaling, const RotaryDefaults& defaults, Scaled& scaled) {
  RotaryConfig& rotary = scaled.rotary;
  if (type == "longrope" || (defaults.yarn_is_longrope && (type == "yarn" || type == "su")))
    return scaleByFactors(scaling, defaults, scaled);
  if (type == "yarn") return scaleByTurns(scaling, defaults, scaled);
  if (type == "dynamic") {
    // Nothing is stretched before the end of the context.
    scaling.ignore("factor");
    scaling.ignore("original_max_position_embeddings");
    scaled.longest = defaults.context;
    return Success{};
  }
  if (type == "llama3") return scaleByWavelength(scaling, defaults, rotary);
  if (type == "linear") {
    LS_CHECK(needed(scaling, type, {"factor"}));
    LS_TRY(const double factor, scaling.number("factor", 0));
    if (!(factor > 0 && std::isfinite(factor)))
      return scaling.wrong(fmt::format("{} is {}, wanted a positive number", scaling.placeOf("factor"), factor),
                           "it says how many times longer than in training a text may be; 1 changes nothing");
    rotary.frequencies = rotary.radians();
    for (double& frequency : rotary.frequencies) frequency /= factor;
    return Success{};
  }
  if (type == "default") return Success{};
  return scaling.wrong(fmt::format("{} is '{}', which is not supported", scaling.placeOf("rope_type"), type),
                       "default, linear, llama3, yarn, longrope and dynamic are supported; without scaling a model works up to its "
                       "original length");
}

Status scale(ConfigReader& scaling, const RotaryDefaults& defaults, Scaled& scaled) {
  LS_TRY(const std::string older, scaling.text("type", "default"));
  LS_TRY(const std::string type, scaling.text("rope_type", older));
  LS_CHECK(scaleAs(type, scaling, defaults, scaled));
  const RotaryConfig& rotary = scaled.rotary;
  if (!isPositive(rotary.amplitude * rotary.amplitude))
    return scaling.wrong(fmt::format("{} is {}, wanted a positive number", scaling.placeOf("attention_factor"), rotary.amplitude),
                         "leave it out: it then follows from the factor");
  return Success{};
}

Result<Scaled> rotaryOf(const ConfigReader& reader, const RotaryDefaults& defaults, const Settings& settings) {
  if (!(settings.part > 0 && settings.part <= 1))
    return reader.wrong(fmt::format("partial_rotary_factor is {}, wanted a part of a head", settings.part), "it is above 0 and at most 1");
  RotaryConfig rotary{.base = settings.base, .dims = static_cast<int64_t>(static_cast<double>(defaults.head_width) * settings.part)};
  if (!(settings.base > 0 && std::isfinite(settings.base)) || rotary.dims < 2 || rotary.dims % 2 != 0 || rotary.dims > defaults.head_width)
    return reader.wrong(fmt::format("rotary positions of base {} for {} of {} columns", settings.base, rotary.dims, defaults.head_width),
                        "the base is positive, and an even number of columns turns");
  return Scaled{.rotary = std::move(rotary)};
}

/// An object of transformers 5: the base, the part that turns, and the scaling together.
Result<Scaled> readParameters(const text::JsonValue& value, const ConfigReader& parent, const std::string& place, Settings settings,
                              const RotaryDefaults& defaults) {
  LS_TRY(ConfigReader reader, ConfigReader::of(value, parent.file(), place));
  LS_TRY(settings.base, reader.number("rope_theta", settings.base));
  LS_TRY(settings.part, reader.number("partial_rotary_factor", settings.part));
  LS_TRY(Scaled scaled, rotaryOf(reader, defaults, settings));
  LS_CHECK(scale(reader, defaults, scaled));
  LS_CHECK(reader.onlyThese());
  return scaled;
}

/// A type that is absent or null has positions without scaling.
Result<Scaled> readType(ConfigReader& types, const char* type, const Settings& settings, const RotaryDefaults& defaults) {
  const text::JsonValue* its = types.find(type);
  if (its == nullptr || its->isNull()) return rotaryOf(types, defaults, settings);
  return readParameters(*its, types, types.placeOf(type), settings, defaults);
}

Result<std::vector<Scaled>> readAll(ConfigReader& reader, const RotaryDefaults& defaults) {
  Settings settings, local;
  LS_TRY(settings.base, reader.number("rope_theta", defaults.base, defaults.base));
  LS_TRY(settings.part, reader.number("partial_rotary_factor", 1, 1.0));
  local = {.base = defaults.local_base, .part = settings.part};
  const bool has_local = defaults.local_base > 0;
  if (has_local) {
    LS_TRY(local.base, reader.number("rope_local_base_freq", defaults.local_base));
  }
  const text::JsonValue* parameters = reader.find("rope_parameters");
  const text::JsonValue* scaling = reader.find("rope_scaling");
  std::vector<Scaled> made(has_local ? 2 : 1);
  if (parameters != nullptr && !parameters->isNull()) {
    if (scaling != nullptr && !scaling->isNull())
      return reader.wrong("there are rope_parameters and rope_scaling", "keep those that the model was made with");
    const text::JsonValue* full = parameters->find("full_attention");
    const text::JsonValue* sliding = parameters->find("sliding_attention");
    if (full == nullptr && sliding == nullptr) {
      LS_TRY(made[0], readParameters(*parameters, reader, "rope_parameters", settings, defaults));
      if (has_local) {
        LS_TRY(made[1], rotaryOf(reader, defaults, local));
      }
      return made;
    }
    if (!has_local)
      return reader.wrong("rope_parameters has types of layers, and the family has one table for all",
                          "put the keys of full_attention directly into rope_parameters");
    LS_TRY(ConfigReader types, ConfigReader::of(*parameters, reader.file(), "rope_parameters"));
    LS_TRY(made[0], readType(types, "full_attention", settings, defaults));
    LS_TRY(made[1], readType(types, "sliding_attention", local, defaults));
    LS_CHECK(types.onlyThese());
    return made;
  }
  LS_TRY(made[0], rotaryOf(reader, defaults, settings));
  if (has_local) {
    LS_TRY(made[1], rotaryOf(reader, defaults, local));
  }
  if (scaling == nullptr || scaling->isNull()) return made;
  LS_TRY(ConfigReader keys, ConfigReader::of(*scaling, reader.file(), "rope_scaling"));
  LS_CHECK(scale(keys, defaults, made[0]));
  LS_CHECK(keys.onlyThese());
  return made;
}

}  // namespace

std::vector<double> RotaryConfig::radians() const {
  if (!frequencies.empty()) return frequencies;
  std::vector<double> made;
  for (int64_t pair = 0; pair < dims / 2; ++pair)
    made.push_back(std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(dims)));
  return made;
}

Result<RotarySettings> readRotary(ConfigReader& reader, const RotaryDefaults& defaults) {
  LS_TRY(const std::vector<Scaled> all, readAll(reader, defaults));
  RotarySettings made;
  for (const Scaled& one : all) {
    // Angles are computed in f32, for as many positions as a config may have.
    constexpr double kMost = std::numeric_limits<float>::max() / double{1 << 24};
    const std::vector<double> frequencies = one.rotary.radians();
    if (const double largest = std::ranges::max(frequencies); !(largest <= kMost))
      return reader.wrong(fmt::format("rotary positions turn by {} per position, which is too much for f32", largest),
                          "rope_theta and the factors of scalings are not that small");
    made.ropes.push_back(one.rotary);
    if (one.longest > 0) made.longest = made.longest > 0 ? std::min(made.longest, one.longest) : one.longest;
  }
  return made;
}

}  // namespace lockstep::llm
