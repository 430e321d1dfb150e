// SPDX-License-Identifier: Apache-2.0
// Files of kernels with marked lines:
//
//   == name dispatch=2 0.0=zeros:256
//   x[id.x] = 1.0;  //~ memory.out_of_bounds ?race.storage
#pragma once

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::testing {

/// One kernel, and what is to be found in it.
struct Case {
  std::string name, text;
  std::map<std::string, std::string> words;          ///< what follows the name: "dispatch" -> "2", "0.0" -> "zeros:256"
  std::set<std::pair<uint32_t, std::string>> marks;  ///< line and code; of "!CODE" it is "error CODE", of "?CODE" "warning CODE"
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
};

/// The marks of a line.
inline void addMarks(Case& made, uint32_t number, const std::string& line) {
  const size_t at = line.find("//~");
  if (at == std::string::npos) return;
  std::istringstream codes(line.substr(at + 3));
  for (std::string code; codes >> code;) {
    const std::string severity = code[0] == '!' ? "error " : code[0] == '?' ? "warning " : "";
    made.marks.emplace(number, severity + code.substr(severity.empty() ? 0 : 1));
  }
}

/// All cases of these files of tests/sanitize, in order.
inline std::vector<Case> readCases(std::initializer_list<const char*> files) {
  std::vector<Case> cases;
  for (const char* file : files) {
    std::ifstream in(std::string(LOCKSTEP_SOURCE_DIR "/tests/sanitize/") + file);
    bool within = false;  // what is before the first case says what the file is for
    uint32_t number = 0;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("== ")) {
        std::istringstream words(line.substr(3));
        Case& made = cases.emplace_back();
        words >> made.name;
        for (std::string word; words >> word;) made.words[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
        within = true;
        number = 0;
      } else if (within) {
        cases.back().text += line + "\n";
        addMarks(cases.back(), ++number, line);
      }
    }
  }
  return cases;
}

}  // namespace lockstep::testing
