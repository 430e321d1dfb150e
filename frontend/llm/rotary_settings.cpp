// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/rotary_settings.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace lockstep::llm {
namespace {

struct Settings {
  double base = 10000, part = 1;  ///< `part` of a head turns
};

/// Long waves are stretched by the factor, short ones stay, and between the two there is a ramp (Llama 3.1).
Status scaleByWavelength(ConfigReader& scaling, const RotaryDefaults& defaults, RotaryConfig& rotary) {
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor"}) {
    if (scaling.find(key) == nullptr) return scaling.wrong(fmt::format("{} is missing", scaling.placeOf(key)), "llama3 scaling needs it");
  }
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

/// `scaling` has rope_type (or type) and what belongs to it.
Status scale(ConfigReader& scaling, const RotaryDefaults& defaults, RotaryConfig& rotary) {
  LS_TRY(const std::string older, scaling.text("type", "default"));
  LS_TRY(const std::string type, scaling.text("rope_type", older));
  if (type == "llama3") return scaleByWavelength(scaling, defaults, rotary);
  if (type == "linear") {
    LS_TRY(const double factor, scaling.number("factor", 1));
    if (!(factor > 0 && std::isfinite(factor)))
      return scaling.wrong(fmt::format("{} is {}, wanted a positive number", scaling.placeOf("factor"), factor));
    rotary.frequencies = rotary.radians();
    for (double& frequency : rotary.frequencies) frequency /= factor;
    return Success{};
  }
  if (type == "default") return Success{};
  return scaling.wrong(fmt::format("{} is '{}', which is not supported", scaling.placeOf("rope_type"), type),
                       "default, linear and llama3 are supported; without scaling a model works up to its original length");
}

Result<RotaryConfig> rotaryOf(const ConfigReader& reader, const RotaryDefaults& defaults, const Settings& settings) {
  if (!(settings.part > 0 && settings.part <= 1))
    return reader.wrong(fmt::format("partial_rotary_factor is {}, wanted a part of a head", settings.part), "it is above 0 and at most 1");
  RotaryConfig rotary{.base = settings.base, .dims = static_cast<int64_t>(static_cast<double>(defaults.head_width) * settings.part)};
  if (!(settings.base > 0 && std::isfinite(settings.base)) || rotary.dims < 2 || rotary.dims % 2 != 0 || rotary.dims > defaults.head_width)
    return reader.wrong(fmt::format("rotary positions of base {} for {} of {} columns", settings.base, rotary.dims, defaults.head_width),
                        "the base is positive, and an even number of columns turns");
  return rotary;
}

/// An object of transformers 5: the base, the part that turns, and the scaling together.
Result<RotaryConfig> readParameters(const text::JsonValue& value, const ConfigReader& parent, const std::string& place, Settings settings,
                                    const RotaryDefaults& defaults) {
  LS_TRY(ConfigReader reader, ConfigReader::of(value, parent.file(), place));
  LS_TRY(settings.base, reader.number("rope_theta", settings.base));
  LS_TRY(settings.part, reader.number("partial_rotary_factor", settings.part));
  LS_TRY(RotaryConfig rotary, rotaryOf(reader, defaults, settings));
  LS_CHECK(scale(reader, defaults, rotary));
  LS_CHECK(reader.onlyThese());
  return rotary;
}

/// A type that is absent or null has positions without scaling.
Result<RotaryConfig> readType(ConfigReader& types, const char* type, const Settings& settings, const RotaryDefaults& defaults) {
  const text::JsonValue* its = types.find(type);
  if (its == nullptr || its->isNull()) return rotaryOf(types, defaults, settings);
  return readParameters(*its, types, types.placeOf(type), settings, defaults);
}

}  // namespace

std::vector<double> RotaryConfig::radians() const {
  if (!frequencies.empty()) return frequencies;
  std::vector<double> made;
  for (int64_t pair = 0; pair < dims / 2; ++pair)
    made.push_back(std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(dims)));
  return made;
}

Result<std::vector<RotaryConfig>> readRotary(ConfigReader& reader, const RotaryDefaults& defaults) {
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
  std::vector<RotaryConfig> made(has_local ? 2 : 1);
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
    if (!has_local) return reader.wrong("rope_parameters has types of layers, and the family has one table for all");
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

}  // namespace lockstep::llm
