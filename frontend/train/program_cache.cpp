// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/program_cache.h"

#include "frontend/trace/trace_function.h"
#include "frontend/train/batch.h"
#include "ir/support/diagnostic.h"

namespace lockstep::detail {

namespace {

graph::Graph traceAt(const ProgramKey& key, const ProgramSource& source, int64_t extent) {
  graph::Graph traced = source.trace(withExtent(source.inputs, extent));
  return key.captures ? traced : withoutCaptures(std::move(traced));
}

}  // namespace

std::shared_ptr<Session> ProgramCache::compile(const ProgramKey& key, const ProgramSource& source) {
  return std::make_shared<Session>(traceAt(key, source, key.extent), source.options(), source.states,
                                   withExtent(source.inputs, key.extent));
}

std::shared_ptr<Session> ProgramCache::get(const ProgramKey& key, const ProgramSource& source) {
  if (auto shared = findShared(key, source)) return shared;
  if (auto found = find(key)) return found;
  auto made = compile(key, source);
  insert(key, made);
  return made;
}

std::shared_ptr<Session> ProgramCache::findShared(const ProgramKey& key, const ProgramSource& source) {
  if (key.extent == 0 || std::ranges::find(source.disabled, passes::kOpenExtents) != source.disabled.end()) return nullptr;
  ExtentChooser& chooser = choosers_[key.captures ? 1 : 0];
  const ChosenExtent& chosen = chooser.choose(key.extent, [&](int64_t extent) { return traceAt(key, source, extent); });
  if (chosen.shared == nullptr) return nullptr;
  const ProgramKey wide{chosen.shared->capacity, key.captures, true};
  auto session = find(wide);
  if (session == nullptr) {
    try {
      session = std::make_shared<Session>(chosen.shared, source.options(), source.states, source.inputs);
    } catch (const Error&) {
      // Up to twice the memory may be too much, where the extent alone can be had.
      chooser.refuse(chosen.shared->capacity);
      return nullptr;
    }
    insert(wide, session);
  }
  session->serve(key.extent, chosen.numbers);
  return session;
}

}  // namespace lockstep::detail
