// SPDX-License-Identifier: Apache-2.0
// A label or an index outside of its range is an error with its row and its value.
#include "frontend/train/function.h"
#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

class WrongIndex : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, WrongIndex, testing::Values("reference", "vulkan"), deviceName);

/// Five rows of four numbers in three classes; the buffer counts steps.
struct Classifier : Module {
  nn::Linear layer{*this, "layer", 4, 3};
  Buffer steps{*this, "steps", {}};
};
/// The same numbers, but the program's own: what is given is looked at before it runs.
Tensor computed(const Tensor& index) { return index * 1; }
Tensor lossOf(const Classifier& m, const Inputs& in) {
  m.steps.update(m.steps + 1.0);
  return cross_entropy(m.layer(in["x"]), computed(in["y"]));
}
Tensor lossOfGiven(const Classifier& m, const Inputs& in) {
  m.steps.update(m.steps + 1.0);
  return cross_entropy(m.layer(in["x"]), in["y"]);
}
CompileSpec<Classifier> specOf(const std::string& device, OptimizerSpec optimizer = adam({.lr = 0.01})) {
  return {.inputs = {{"x", f32(5, 4)}, {"y", i32(5)}}, .loss = lossOf, .optimizer = std::move(optimizer), .seed = 1, .device = device};
}
const std::vector<float> kRows(20, 0.5f);
using Labels = std::vector<int32_t>;
const Labels kGood{0, 1, 2, 0, 1}, kBad{0, 1, 2, 7, -1};

Batch batchOf(const Labels& labels) { return {{"x", kRows}, {"y", labels}}; }

TEST_P(WrongIndex, fails_the_step_and_changes_nothing) {
  for (const OptimizerSpec& optimizer : {adam({.lr = 0.01}), adam({.lr = 0.01}, {.clip_grad_norm = 1, .ema_decay = 0.9})}) {
    auto trainer = compile<Classifier>(specOf(GetParam(), optimizer));
    ASSERT_TRUE(trainer.step(batchOf(kGood)).completed());
    const auto before = trainer.checkpoint().tensors;
    const StepResult result = trainer.step(batchOf(kBad));
    ASSERT_FALSE(result.completed());
    EXPECT_EQ(result.failure->kind, FailureKind::Index);
    EXPECT_TRUE(std::isnan(result.loss));
    ASSERT_EQ(result.failure->diagnostics.size(), 1u);
    const Diagnostic& diagnostic = result.failure->diagnostics.front();
    EXPECT_EQ(diagnostic.code, "step.index");
    EXPECT_EQ(diagnostic.message, "label 7 of row 3 is outside the 3 classes (cross_entropy, step 2)");
    EXPECT_EQ(diagnostic.remedy, "0 to 2 are right; look at the data");
    EXPECT_TRUE(diagnostic.where.file.ends_with("wrong_index_test.cpp")) << diagnostic.where.file;
    EXPECT_EQ(diagnostic.where.line, 21u);
    const Error error = caught([&] { (void)result.or_throw(); });
    EXPECT_EQ(error.exitCode(), ExitCode::BadInput);
    EXPECT_EQ(trainer.checkpoint().tensors, before);
    EXPECT_EQ(trainer.step_count(), 2u);
    EXPECT_TRUE(trainer.step(batchOf(kGood)).completed());
  }
}

TEST_P(WrongIndex, of_an_input_is_an_error_before_anything_runs) {
  CompileSpec<Classifier> spec = specOf(GetParam());
  spec.loss = lossOfGiven;
  auto trainer = compile<Classifier>(spec);
  ASSERT_TRUE(trainer.step(batchOf(kGood)).completed());
  const auto before = trainer.checkpoint().tensors;
  const Error error = caught([&] { (void)trainer.step(batchOf(kBad)); });
  EXPECT_EQ(error.code(), "batch.index");
  EXPECT_EQ(error.exitCode(), ExitCode::BadInput);
  EXPECT_EQ(error.diagnostics()[0].message, "label 7 of row 3 of 'y' is outside the 3 classes (cross_entropy, step 2)");
  const std::vector<Labels> batches{kGood, kBad};
  EXPECT_EQ(caught([&] { (void)trainer.steps(2, [&](size_t i) { return batchOf(batches[i]); }); }).diagnostics()[0].message,
            "label 7 of row 3 of 'y' is outside the 3 classes (cross_entropy, step 3)");
  EXPECT_EQ(caught([&] { (void)trainer.profile(batchOf(kBad)); }).code(), "batch.index");
  EXPECT_EQ(trainer.checkpoint().tensors, before);
  EXPECT_EQ(trainer.step_count(), 1u);
  EXPECT_TRUE(trainer.step(batchOf(kGood)).completed());
}

TEST_P(WrongIndex, of_an_input_adds_no_dispatch) {
  const auto dispatches = [](const CompileSpec<Classifier>& spec) { return compile<Classifier>(spec).facts().dispatches; };
  CompileSpec<Classifier> looks = specOf(GetParam()), blind = specOf(GetParam());
  looks.loss = blind.loss = lossOfGiven;
  blind.check_indices = false;
  EXPECT_EQ(dispatches(looks), dispatches(blind));
}

TEST_P(WrongIndex, of_an_accumulated_batch_is_counted_in_the_whole_of_it) {
  CompileSpec<Classifier> spec = specOf(GetParam());
  spec.loss = lossOfGiven;
  spec.accumulate = 2;
  auto trainer = compile<Classifier>(spec);
  std::vector<float> x = kRows;
  x.insert(x.end(), kRows.begin(), kRows.end());
  const Labels both{0, 1, 2, 0, 1, 0, 3, 2, 0, 1};
  EXPECT_EQ(caught([&] { (void)trainer.step({{"x", x}, {"y", both}}); }).diagnostics()[0].message,
            "label 3 of row 6 of 'y' is outside the 3 classes (cross_entropy, step 1)");
}

TEST_P(WrongIndex, is_found_in_any_step_of_a_submission) {
  auto trainer = compile<Classifier>(specOf(GetParam())), other = compile<Classifier>(specOf(GetParam()));
  const Labels low{0, -5, 2, 0, 1};
  const std::vector<Labels> batches{kGood, kBad, kGood, low};
  for (const std::vector<StepResult>& results : {trainer.steps(4, [&](size_t i) { return batchOf(batches[i]); }),
                                                 other.wait(other.enqueue(4, [&](size_t i) { return batchOf(batches[i]); }))}) {
    ASSERT_EQ(results.size(), 4u);
    EXPECT_TRUE(results[0].completed());
    ASSERT_FALSE(results[1].completed());
    EXPECT_NE(results[1].failure->diagnostics[0].message.find("label 7 of row 3"), std::string::npos);
    EXPECT_TRUE(results[2].completed());
    ASSERT_FALSE(results[3].completed());
    EXPECT_EQ(results[3].failure->diagnostics[0].message, "label -5 of row 1 is outside the 3 classes (cross_entropy, step 4)");
  }
  // As if the two had not been: but for the number of the step, which the moments are corrected by.
  EXPECT_EQ(trainer.download(), other.download());
}

TEST_P(WrongIndex, is_told_from_a_loss_that_is_not_finite) {
  auto trainer = compile<Classifier>(specOf(GetParam()));
  std::vector<float> broken = kRows;
  broken[2] = NAN;
  EXPECT_EQ(trainer.step({{"x", broken}, {"y", kGood}}).failure->kind, FailureKind::NonFinite);
  EXPECT_EQ(trainer.step({{"x", broken}, {"y", kBad}}).failure->kind, FailureKind::Index);
  const auto results = trainer.steps(2, [&](size_t i) { return Batch{{"x", i == 0 ? kRows : broken}, {"y", i == 0 ? kBad : kGood}}; });
  EXPECT_EQ(results[0].failure->kind, FailureKind::Index);
  ASSERT_EQ(results[1].failure->kind, FailureKind::NonFinite);
  EXPECT_TRUE(results[1].failure->origin.has_value());
}

TEST_P(WrongIndex, names_the_run_of_an_accumulated_step) {
  CompileSpec<Classifier> spec = specOf(GetParam());
  spec.accumulate = 2;
  auto trainer = compile<Classifier>(spec);
  const ParameterValues before = trainer.download();
  std::vector<float> x = kRows;
  x.insert(x.end(), kRows.begin(), kRows.end());
  const Labels both{0, 1, 2, 0, 1, 0, 3, 2, 0, 1};
  const StepResult result = trainer.step({{"x", x}, {"y", both}});
  ASSERT_FALSE(result.completed());
  EXPECT_EQ(result.failure->diagnostics[0].message, "label 3 of row 1 is outside the 3 classes (cross_entropy, run 2 of step 1)");
  EXPECT_EQ(trainer.download().at("layer.W"), before.at("layer.W"));
}

TEST_P(WrongIndex, can_be_ignored_where_the_op_says_so) {
  CompileSpec<Classifier> spec = specOf(GetParam());
  spec.loss = [](const Classifier& m, const Inputs& in) {
    return cross_entropy(m.layer(in["x"]), computed(in["y"]), {.ignore_index = -100});
  };
  auto trainer = compile<Classifier>(spec);
  EXPECT_TRUE(trainer.step(batchOf({0, -100, 2, -100, 1})).completed());
  const StepResult result = trainer.step(batchOf({0, -100, 2, -1, 1}));
  ASSERT_FALSE(result.completed());
  EXPECT_EQ(result.failure->diagnostics[0].message, "label -1 of row 3 is outside the 3 classes (cross_entropy, step 2)");
  EXPECT_EQ(result.failure->diagnostics[0].remedy, "0 to 2 and the ignored -100 are right; look at the data");
}

TEST_P(WrongIndex, of_nll_loss_is_found_beside_ignored_ones) {
  CompileSpec<Classifier> spec = specOf(GetParam());
  spec.loss = [](const Classifier& m, const Inputs& in) {
    return nll_loss(log_softmax(m.layer(in["x"])), computed(in["y"]), {.ignore_index = -100});
  };
  auto trainer = compile<Classifier>(spec);
  EXPECT_TRUE(trainer.step(batchOf({0, -100, 2, -100, 1})).completed());
  const StepResult result = trainer.step(batchOf({0, -100, 2, 0, 3}));
  ASSERT_FALSE(result.completed());
  EXPECT_NE(result.failure->diagnostics[0].message.find("index 3 of row 4"), std::string::npos) << result.failure->diagnostics[0].message;
}

TEST_P(WrongIndex, is_no_error_where_it_is_not_looked_for) {
  CompileSpec<Classifier> spec = specOf(GetParam());
  spec.check_indices = false;
  auto trainer = compile<Classifier>(spec);
  EXPECT_TRUE(trainer.step(batchOf(kBad)).completed());
  CompileSpec<Classifier> disabled = specOf(GetParam());
  disabled.disable = {"checkIndices"};
  auto without = compile<Classifier>(disabled);
  EXPECT_TRUE(without.step(batchOf(kBad)).completed());
  EXPECT_EQ(without.download(), trainer.download());
  // A forward of a trainer that does not look does not look either.
  auto forward = trainer.attach(
      {.inputs = {{"y", i32(5)}}, .forward = [](const Classifier&, const Inputs& in) { return one_hot(computed(in["y"]), 3); }});
  EXPECT_NO_THROW(forward.run({{"y", kBad}}));
}

TEST_P(WrongIndex, without_the_guard_the_step_is_done_and_fails_all_the_same) {
  auto trainer = compile<Classifier>(specOf(GetParam(), adam({.lr = 0.01}, {.skip_non_finite = false})));
  const ParameterValues before = trainer.download();
  EXPECT_EQ(trainer.step(batchOf(kBad)).failure->kind, FailureKind::Index);
  EXPECT_NE(trainer.download(), before);
}

/// In a loop of four steps over a table of four rows: of what is carried on, of what a step computes, of what is given.
TEST_P(WrongIndex, in_a_loop_names_the_step_and_the_place) {
  using Tuple = std::vector<Tensor>;
  const auto run = [&](const LoopBody& body, const Labels& first, const Labels& sliced) {
    Function function = ls::function({.inputs = {{"table", f32(4, 2)}, {"first", i32(2)}, {"sliced", i32(4, 2)}},
                                      .body =
                                          [&](const Inputs& in) {
                                            const LoopResult result = scan(body, {in["first"], in["table"]}, {in["sliced"]});
                                            return sum(result.results[0]) + sum(cast(result.carry[0], DType::F32));
                                          },
                                      .device = GetParam()});
    const std::vector<float> table(8, 1);
    try {
      (void)function({{"table", table}, {"first", first}, {"sliced", sliced}});
    } catch (const Error& error) {
      return error.code() + ": " + error.diagnostics()[0].message;
    }
    return std::string();
  };
  const LoopBody carried = [](const Tuple& now, const Tuple& slice) -> LoopStep {
    return {{now[0] + slice[0], now[1]}, {index_select(now[1], 0, now[0])}};
  };
  const LoopBody computed = [](const Tuple& now, const Tuple& slice) -> LoopStep {
    return {{slice[0], now[1]}, {index_select(now[1], 0, slice[0] * 2)}};
  };
  const LoopBody given = [](const Tuple& now, const Tuple& slice) -> LoopStep {
    return {{slice[0], now[1]}, {index_select(now[1], 0, slice[0])}};
  };
  const Labels ones(8, 1);
  EXPECT_EQ(run(carried, {0, 0}, ones), "");
  EXPECT_EQ(run(carried, {0, 2}, ones), "step.index: index 4 at [2, 1] is outside the 4 places of that axis (index_select, call 1)");
  EXPECT_EQ(run(computed, {0, 0}, ones), "");
  EXPECT_EQ(run(computed, {9, 9}, {1, 1, 0, 0, 1, -1, 1, 1}),
            "step.index: index -2 at [2, 1] is outside the 4 places of that axis (index_select, call 1)");
  EXPECT_EQ(run(given, {0, 0}, {0, 1, 2, 3, 0, 0, 4, 0}),
            "batch.index: index 4 at [3, 0] of 'sliced' is outside the 4 places of that axis (index_select, call 1)");
}

TEST_P(WrongIndex, of_a_forward_is_thrown) {
  auto trainer = compile<Classifier>(specOf(GetParam()));
  auto forward = trainer.attach({.inputs = {{"y", i32(5)}},
                                 .forward = [](const Classifier& m, const Inputs& in) { return embedding(m.layer.W, computed(in["y"])); }});
  EXPECT_NO_THROW(forward.run({{"y", kGood}}));
  const Error error = caught([&] { forward.run({{"y", kBad}}); });
  EXPECT_EQ(error.code(), "step.index");
  EXPECT_EQ(error.exitCode(), ExitCode::BadInput);
  EXPECT_NE(error.diagnostics()[0].message.find("row 3 is outside the"), std::string::npos) << error.what();
}

struct OpRow {
  std::string name;
  std::function<Tensor(const Tensor& data, const Tensor& index)> body;
  std::string message;      ///< of the index {0, 2, 5, 1}; empty: none
  bool takes_index = true;  ///< as it is
};

TEST_P(WrongIndex, of_every_op_that_takes_one) {
  const Labels index{0, 2, 5, 1};
  const std::vector<float> data{1, 2, 3, 4, 5, 6, 7, 8};
  const OpRow rows[] = {
      {"embedding", [](const Tensor& data, const Tensor& index) { return embedding(reshape(data, {4, 2}), index); },
       "index 5 of row 2 is outside the 4 rows of the table (embedding, call 1)"},
      {"embedding of two axes",
       [](const Tensor& data, const Tensor& index) { return embedding(reshape(data, {4, 2}), reshape(index, {2, 2})); },
       "index 5 of row 2 is outside the 4 rows of the table (embedding, call 1)"},
      {"index_select", [](const Tensor& data, const Tensor& index) { return index_select(reshape(data, {4, 2}), 0, index); },
       "index 5 of row 2 is outside the 4 places of that axis (index_select, call 1)"},
      {"take_along_axis",
       [](const Tensor& data, const Tensor& index) { return take_along_axis(reshape(data, {2, 4}), reshape(index, {2, 2}), 1); },
       "index 5 of row 2 is outside the 4 places of that axis (take_along_axis, call 1)"},
      {"segment_sum", [](const Tensor& data, const Tensor& index) { return segment_sum(reshape(data, {4, 2}), index, 3); },
       "index 5 of row 2 is outside the 3 segments (segment_sum, call 1)"},
      {"scatter_add", [](const Tensor& data, const Tensor& index) { return scatter_add(narrow(data, 0, 0, 4), 0, index, full({4}, 1)); },
       "index 5 of row 2 is outside the 4 places of that axis (scatter_add, call 1)"},
      {"one_hot", [](const Tensor&, const Tensor& index) { return one_hot(index, 3); },
       "index 5 of row 2 is outside the 3 places (one_hot, call 1)"},
      {"cross_entropy", [](const Tensor& data, const Tensor& index) { return cross_entropy(reshape(data, {4, 2}), index); },
       "label 2 of row 1 is outside the 2 classes (cross_entropy, call 1)"},
      {"cast", [](const Tensor& data, const Tensor&) { return embedding(reshape(data, {4, 2}), cast(data, DType::I32)); },
       "index 4 of row 3 is outside the 4 rows of the table (embedding, call 1)", false},
      {"made of two axes", [](const Tensor& data, const Tensor&) { return one_hot(cast(reshape(data, {2, 4}), DType::I32) - 1, 6); },
       "index 6 at [1, 2] is outside the 6 places (one_hot, call 1)", false},
      {"within", [](const Tensor&, const Tensor& index) { return one_hot(min(max(index, 0), 2), 3); }, ""},
  };
  for (const OpRow& row : rows) {
    for (bool given : {true, false}) {
      auto run = function({.inputs = {{"data", f32(8)}, {"index", i32(4)}},
                           .body = [&](const Inputs& in) { return row.body(in["data"], given ? in["index"] : computed(in["index"])); },
                           .device = GetParam()});
      const Batch batch{{"data", data}, {"index", index}};
      if (row.message.empty()) {
        EXPECT_NO_THROW(run(batch)) << row.name;
        continue;
      }
      const Error error = caught([&] { run(batch); });
      const bool of_input = given && row.takes_index;
      std::string wanted = row.message;
      if (of_input) wanted.insert(wanted.find(" is outside"), " of 'index'");
      EXPECT_EQ(error.code(), of_input ? "batch.index" : "step.index") << row.name;
      EXPECT_EQ(error.diagnostics()[0].message, wanted) << row.name;
    }
  }
}

TEST_P(WrongIndex, of_a_gradient_inside_of_a_program_is_looked_at_once) {
  // The gradient takes the ignored label over, which is right for cross_entropy alone.
  auto run = function({.inputs = {{"x", f32(5, 3)}, {"y", i32(5)}},
                       .body =
                           [](const Inputs& in) {
                             Tensor x = in["x"];
                             return grad(cross_entropy(x, computed(in["y"]), {.ignore_index = -100}), {x})[0];
                           },
                       .device = GetParam()});
  const std::vector<float> x(15, 0.25f);
  EXPECT_NO_THROW(run({{"x", x}, {"y", Labels{0, -100, 2, 0, 1}}}));
  EXPECT_EQ(caught([&] { run({{"x", x}, {"y", Labels{0, -100, 2, 0, 3}}}); }).code(), "step.index");
}

}  // namespace
}  // namespace lockstep
