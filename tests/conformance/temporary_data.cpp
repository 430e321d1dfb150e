// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/temporary_data.h"

#include <zlib.h>

namespace lockstep::conformance {

void TemporaryData::write(std::string_view file, std::string_view text) const {
  gzFile out = gzopen(pathOf(file).c_str(), "wb");
  ASSERT_NE(out, nullptr);
  if (!text.empty()) {
    EXPECT_EQ(gzwrite(out, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  }
  EXPECT_EQ(gzclose(out), Z_OK);
}

}  // namespace lockstep::conformance
