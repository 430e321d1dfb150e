// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/bisect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "ir/graph/op_def.h"
#include "passes/kernel/kernel_pipeline.h"
#include "tools/explore/explore_groups.h"

namespace lockstep::tools {
namespace {

using program::Program;

constexpr std::array<std::string_view, 3> kOutcomes{"no difference", "every build", "found"};
constexpr std::string_view kFuse = "fuse";

/// The smallest number in (good, bad] for which `wrong` holds; it does for `bad` and does not for `good`.
template <class Wrong>
Result<size_t> firstWrong(size_t good, size_t bad, Wrong wrong) {
  while (bad - good > 1) {
    const size_t middle = good + (bad - good) / 2;
    LS_TRY(const bool is_wrong, wrong(middle));
    (is_wrong ? bad : good) = middle;
  }
  return bad;
}

bool isKernelPass(std::string_view name) {
  const std::vector<passes::KernelPassInfo> all = passes::listKernelPasses();
  return std::ranges::find(all, name, &passes::KernelPassInfo::name) != all.end();
}

std::vector<CommandOrigin> originsIn(const BuiltProgram& built) {
  if (built.grouped && built.scheduled) return originsOf(*built.grouped, *built.scheduled, built.program);
  return std::vector<CommandOrigin>(built.program.commands.size());
}

/// Members with their types and places: what a group is, whatever it is called.
std::string keyOf(const graph::Graph& graph, const graph::Node& group) {
  std::string key;
  for (const graph::NodeId id : graph[group.regions.front()].nodes) {
    const graph::Node& node = graph[id];
    const Location where = node.location == 0 ? Location{} : graph.locations[node.location - 1];
    key += fmt::format("{} {} {}:{}:{};", *node.op->name, graph::toString(graph.typeOf(node.results.front())), where.file, where.line,
                       where.column);
  }
  return key;
}

class Bisecting {
 public:
  explicit Bisecting(const BisectRequest& request) : request_(request), passes_(request.passes) {}

  Result<Bisection> run() {
    LS_TRY(const bool wrong_with_all, isWrong(upTo(passes_.size()), "all passes"));
    if (!wrong_with_all) return std::move(result_);
    result_.outcome = Bisection::Outcome::EveryBuild;
    LS_TRY(const bool wrong_without_any, isWrongWithoutAny());
    if (wrong_without_any) {
      LS_TRY(const BuiltProgram built, request_.build(upTo(0)));
      LS_CHECK(blameFirstWrong(built));
      return std::move(result_);
    }
    result_.outcome = Bisection::Outcome::Found;
    LS_TRY(const size_t first, firstWrong(0, passes_.size(), [&](size_t passes) {
             return isWrong(upTo(passes), fmt::format("passes up to {}", passes_[passes - 1]));
           }));
    result_.pass = passes_[first - 1];
    LS_TRY(const bool still_wrong, isWrong({.disabled = {result_.pass}}, "all passes but " + result_.pass));
    result_.alone = !still_wrong;
    LS_CHECK(blame(first));
    return std::move(result_);
  }

 private:
  /// The first so many passes on, the others off.
  [[nodiscard]] PassChoice upTo(size_t passes) const {
    const auto begin = passes_.begin() + static_cast<std::ptrdiff_t>(passes);
    return {.disabled = {begin, passes_.end()}};
  }

  Result<bool> isWrongWithoutAny() {
    const std::string what = "no optional pass";
    Result<bool> wrong = isWrong(upTo(0), what);
    if (wrong.ok() || std::ranges::none_of(passes_, isKernelPass)) return wrong;
    result_.trials.push_back({.what = what, .refused = wrong.diagnostics().front().code});
    result_.keeps_kernel_passes = true;
    std::erase_if(passes_, isKernelPass);
    return isWrong(upTo(0), what + " but kernel passes");
  }

  Result<bool> isWrong(const PassChoice& choice, std::string what) {
    LS_TRY(const BuiltProgram built, request_.build(choice));
    return isWrong(built.program, std::move(what));
  }
  Result<bool> isWrong(const Program& program, std::string what) {
    LS_TRY(const double distance, request_.measure(program));
    return result_.trials.emplace_back(Trial{std::move(what), distance}).wrong();
  }

  Status blame(size_t passes) {
    LS_TRY(const BuiltProgram good, request_.build(upTo(passes - 1)));
    LS_TRY(const BuiltProgram bad, request_.build(upTo(passes)));
    if (isKernelPass(result_.pass) && good.program.commands == bad.program.commands) return blameKernel(good.program, bad);
    if (result_.pass == kFuse && bad.grouped) return blameGroup(passes, bad);
    return blameFirstWrong(bad);
  }

  /// Each kernel is either that of one program or that of the other.
  Status blameKernel(const Program& good, const BuiltProgram& bad) {
    const size_t count = good.kernels.size();
    LS_TRY(const size_t first, firstWrong(0, count, [&](size_t kernels) {
             Program mixed = good;
             std::copy_n(bad.program.kernels.begin(), kernels, mixed.kernels.begin());
             return isWrong(mixed, fmt::format("{} in kernels up to {}", result_.pass, bad.program.kernels[kernels - 1].name));
           }));
    const std::vector<CommandOrigin> origins = originsIn(bad);
    for (size_t i = 0; i < bad.program.commands.size(); ++i) {
      const auto* dispatch = std::get_if<program::Dispatch>(&bad.program.commands[i].action);
      if (dispatch == nullptr || dispatch->kernel.index() != first - 1) continue;
      accuse(bad.program, i, origins[i]);
      break;
    }
    return Success{};
  }

  /// Fewer and fewer nodes join others.
  Status blameGroup(size_t passes, const BuiltProgram& all) {
    const auto with = [&](size_t joining) {
      PassChoice choice = upTo(passes);
      choice.fused_nodes = joining;
      return choice;
    };
    LS_TRY(const bool wrong_apart, isWrong(with(0), "fuse without a node that joins another"));
    if (wrong_apart) return blameFirstWrong(all);
    LS_TRY(const size_t first, firstWrong(0, all.fusable, [&](size_t joining) {
             return isWrong(with(joining), fmt::format("fuse of the first {} nodes", joining));
           }));
    LS_TRY(const BuiltProgram good, request_.build(with(first - 1)));
    LS_TRY(const BuiltProgram bad, request_.build(with(first)));
    return blameNewGroups(good, bad);
  }

  /// The groups that one program has and the other has not.
  Status blameNewGroups(const BuiltProgram& good, const BuiltProgram& bad) {
    std::multiset<std::string> known;
    const auto groups = [](const graph::Graph& graph) {
      std::vector<graph::NodeId> found;
      for (const graph::NodeId id : graph.body().nodes) {
        if (!graph[id].regions.empty() || std::holds_alternative<graph::KernelLowering>(*graph[id].op->lower)) found.push_back(id);
      }
      return found;
    };
    for (const graph::NodeId id : groups(*good.grouped)) {
      if (!(*good.grouped)[id].regions.empty()) known.insert(keyOf(*good.grouped, (*good.grouped)[id]));
    }
    const std::vector<GroupPlace> places = placeGroups(*bad.grouped, *bad.scheduled, bad.program);
    const std::vector<CommandOrigin> origins = originsIn(bad);
    const std::vector<graph::NodeId> all = groups(*bad.grouped);
    for (size_t i = 0; i < all.size(); ++i) {
      const graph::Node& node = (*bad.grouped)[all[i]];
      if (node.regions.empty()) continue;
      if (const auto same = known.find(keyOf(*bad.grouped, node)); same != known.end()) {
        known.erase(same);
      } else if (!places[i].commands.empty()) {
        accuse(bad.program, places[i].commands.front(), origins[places[i].commands.front()]);
      }
    }
    return Success{};
  }

  Status blameFirstWrong(const BuiltProgram& bad) {
    if (!request_.first_wrong_command) return Success{};
    LS_TRY(const std::optional<size_t> command, request_.first_wrong_command(bad.program));
    if (command) accuse(bad.program, *command, originsIn(bad)[*command]);
    return Success{};
  }

  void accuse(const Program& program, size_t command, const CommandOrigin& origin) {
    const auto* dispatch = std::get_if<program::Dispatch>(&program.commands[command].action);
    result_.culprits.push_back({dispatch == nullptr ? "" : program[dispatch->kernel].name, program.commands[command].label, origin});
  }

  const BisectRequest& request_;
  std::vector<std::string> passes_;  ///< those that may be left out
  Bisection result_;
};

}  // namespace

std::string_view toString(Bisection::Outcome outcome) { return kOutcomes[static_cast<size_t>(outcome)]; }

Result<Bisection> bisectPasses(const BisectRequest& request) { return Bisecting(request).run(); }

}  // namespace lockstep::tools
