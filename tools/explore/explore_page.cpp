// SPDX-License-Identifier: Apache-2.0
#include "tools/explore/explore_page.h"

#include "tools/explore/explore_data.h"

namespace lockstep::tools {
namespace {

void replaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

void fill(std::string& page, std::string_view mark, std::string_view content) {
  const size_t at = page.find(mark);
  if (at == std::string::npos) internalError("the viewer's page lacks a mark");
  page.replace(at, mark.size(), content);
}

}  // namespace

std::string explorePage(const std::string& title, std::string data) {
  // In a script element "</script" and "<!--" end or change the script; in a string of JSON "\u003c" is "<".
  replaceAll(data, "<", "\\u003c");
  std::string escaped = title;
  replaceAll(escaped, "&", "&amp;");
  replaceAll(escaped, "<", "&lt;");
  std::string page(viewerFiles().page);
  // Backwards, so that nothing that was put in is searched for a mark.
  fill(page, "/*script*/", viewerFiles().script);
  fill(page, "/*data*/", data);
  fill(page, "/*style*/", viewerFiles().style);
  fill(page, "<!--title-->", escaped);
  return page;
}

}  // namespace lockstep::tools
