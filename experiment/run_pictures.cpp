// SPDX-License-Identifier: Apache-2.0
#include "experiment/run_pictures.h"

#include <fmt/format.h>

#include <cstdio>
#include <new>
#include <stdexcept>
#include <utility>

#include "console/diagnostic_text.h"
#include "frontend/io/file.h"

namespace lockstep::experiment {

void RunPictures::open(const RunFolder& folder, int64_t done) {
  folder_ = &folder;
  orWarn([&]() -> Status {
    exhibits_ = folder.readExhibits(done);
    return Success{};
  });
}

void RunPictures::orWarn(const std::function<Status()>& make) {
  try {
    if (const Status made = make(); !made.ok()) warn(made.diagnostics());
  } catch (const Error& error) {
    warn(error.diagnostics());
  } catch (const std::bad_alloc&) {
    warn(fail("memory.host", "the machine has no memory left for a picture or a page").diagnostics);
  } catch (const std::length_error&) {
    warn(fail("memory.host", "a picture or a page is larger than memory can be").diagnostics);
  }
}

void RunPictures::warn(const std::vector<Diagnostic>& diagnostics) {
  const Diagnostic& first = diagnostics.front();
  // A full disk fails every picture; one line says so.
  if (!warned_.insert(first.code).second) return;
  view_.clear();
  const std::string text = fmt::format("warning: {}: {}\n", first.code, first.message);
  (void)std::fputs(console::paintDiagnostic(text, stderr).c_str(), stderr);
}

void RunPictures::exhibit(Experiment& experiment, int64_t step) {
  orWarn([&]() -> Status {
    const std::vector<Exhibit> exhibits = experiment.exhibits();
    for (const Exhibit& each : exhibits) {
      if (const auto* text = std::get_if<std::string>(&each.content)) view_.sample(*text);
    }
    if (folder_ == nullptr) return Success{};
    // A run that was resumed at its end makes them once more.
    std::erase_if(exhibits_, [&](const StoredExhibit& old) { return old.step == step; });
    for (const Exhibit& each : exhibits) orWarn([&] { return keep(step, each); });
    return Success{};
  });
}

Status RunPictures::keep(int64_t step, const Exhibit& exhibit) {
  LS_TRY(StoredExhibit stored, folder_->addExhibit(step, exhibit));
  exhibits_.push_back(std::move(stored));
  return Success{};
}

Status RunPictures::write(const std::string& title, ReportData data) const {
  LS_CHECK(folder_->writeCurve(title, data.history.losses));
  data.exhibits = exhibits_;
  return io::writeFileAtomically(folder_->path() / "report.html", std::string_view(reportPage(data)));
}

void RunPictures::writePages(const std::string& title, const std::function<ReportData()>& data) {
  if (folder_ == nullptr) return;
  const Clock::time_point begin = Clock::now();
  orWarn([&] { return write(title, data()); });
  last_pages_ = Clock::now();
  pages_took_ = last_pages_ - begin;
}

void RunPictures::writePagesSometimes(const std::string& title, const std::function<ReportData()>& data) {
  if (Clock::now() - last_pages_ >= 20 * pages_took_) writePages(title, data);
}

}  // namespace lockstep::experiment
