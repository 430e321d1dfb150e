// SPDX-License-Identifier: Apache-2.0
// A page in headless Chromium, driven over its debugging protocol: what a reader would see, click and be told.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/frontend/io/scratch.h"

namespace lockstep::testing {

/// A size in CSS pixels and what the system asks for.
struct Screen {
  int width = 1400, height = 900;
  bool dark = false;
  [[nodiscard]] std::string name() const { return std::to_string(width) + (dark ? "-dark" : ""); }
};

/// The sizes that every page is tried at: a desk's and a phone's, in both colours.
inline constexpr Screen kScreens[] = {{1400, 900, false}, {1400, 900, true}, {420, 800, false}, {420, 800, true}};

/// Failures throw std::runtime_error, so a test ends with their text. The browser ends with the object.
class Browser {
 public:
  /// Whether the Debian package chromium is there.
  static bool exists();
  /// Keeps the browser's profile in `scratch`. `options` go to its command line.
  explicit Browser(const ScratchDirectory& scratch, const std::string& options = "");
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void resize(const Screen& screen);
  /// Opens an address in a fresh document and waits until it is loaded; complaints() and requests() start anew.
  void open(const std::string& url);
  /// The value of an expression as JSON text, awaited when it is a promise; undefined is null.
  std::string evaluate(const std::string& expression);
  /// Waits up to ten seconds for an expression to be true.
  void waitFor(const std::string& expression);
  /// The middle of the first element that a selector finds, in CSS pixels of the window; scrolls to it.
  std::pair<double, double> middleOf(const std::string& selector);
  void move(double x, double y);
  void click(double x, double y, int times = 1);
  void drag(double x1, double y1, double x2, double y2);
  /// A PNG of the window, or of the whole page.
  void capture(const std::string& path, bool whole_page = false);

  /// Errors and warnings of the page since it was opened: thrown, logged, and the browser's own.
  [[nodiscard]] std::vector<std::string> complaints();
  /// Addresses other than the page's own that it asked for; data: is none.
  [[nodiscard]] const std::vector<std::string>& requests() const;
  /// Where its own debugging pages are served, with the option --remote-debugging-port=0; for example "http://127.0.0.1:1234".
  [[nodiscard]] std::string toolsAddress();

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

/// Where the pictures of a test go: $LOCKSTEP_PICTURES, to look at them or to keep them in docs/images, else its scratch folder.
std::string pictureFile(const ScratchDirectory& scratch, const std::string& name);

}  // namespace lockstep::testing
