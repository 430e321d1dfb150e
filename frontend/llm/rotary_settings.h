// SPDX-License-Identifier: Apache-2.0
// Private: what config.json says about rotary positions.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/llm/config_reader.h"
#include "frontend/llm/language_config.h"

namespace lockstep::llm {

struct RotaryDefaults {
  double base = 10000;
  double local_base = 0;  ///< of layers with a window; 0: the family has one table
  int64_t head_width = 0;
  int64_t context = 0;            ///< positions of the model: what is stretched where a scaling does not say a length
  int64_t original = 0;           ///< positions before longrope made them more; 0: as the scaling says
  bool yarn_is_longrope = false;  ///< Phi-3's older names of it: "yarn" and "su"
};
/// One table, or that of layers without a window and that of those with one.
struct RotarySettings {
  std::vector<RotaryConfig> ropes;
  int64_t longest = 0;  ///< as LanguageConfig::longest
};

/// Of rope_parameters (transformers 5, also with one object per type of layer), or of rope_theta, rope_scaling, partial_rotary_factor and
/// rope_local_base_freq (transformers 4). One, or two where there is a local base: the second is that of layers with a window. Codes
/// language_config.key and language_config.value, also for a scaling that is not supported.
Result<RotarySettings> readRotary(ConfigReader& reader, const RotaryDefaults& defaults);

}  // namespace lockstep::llm
