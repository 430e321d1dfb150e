// SPDX-License-Identifier: Apache-2.0
// A broken case of every constraint of every op.
#include <fmt/format.h>

#include <limits>

#include "ir/ops/support/common.h"
#include "tests/ir/ops/broken_ops.h"

namespace lockstep::graph::testing {

std::vector<Broken> brokenCases() {
  TensorType x = f32({2, 3}), row = f32({3}), idx = i32({2, 3}), flag = boolean({2, 3}), scalar = f32({}), key = u32({4});
  const TensorType count = i32({2}), share = f32({2}), ranks = i32({2, 1, 4});
  int64_t huge = int64_t{1} << 33;
  double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Broken> broken{
      {"parameter", "C1", {}, leaf({2, 0}), {}},
      {"input", "C1", {}, leaf({-3}), {}},
      {"input", "C2", {}, {{"name", std::string("i")}, {"dtype", DType::F32}, {"shape", Integers{2}}, {"below", int64_t{3}}}, {}},
      {"state", "C1", {}, {{"name", std::string("s")}, {"dtype", DType::F32}, {"shape", Integers{huge}}, {"init", 0.0}}, {}},
      {"state", "C2", {}, {{"name", std::string("s")}, {"dtype", DType::I32}, {"shape", Integers{2}}, {"init", 0.5}}, {}},
      {"constant", "C1", {}, {{"value", 1.0}, {"dtype", DType::F32}, {"shape", Integers{0}}}, {}},
      {"constant", "C2", {}, {{"value", -1.0}, {"dtype", DType::U32}, {"shape", Integers{2}}}, {}},
      {"dense", "C1", {}, {{"data", ConstantId(1)}}, {{row, {1, 2, 3}}}},
      {"dense", "C2", {}, {{"data", ConstantId(0)}}, {{f32({0}), {}}}},
      {"dense", "C3", {}, {{"data", ConstantId(0)}}, {{row, {1, 2}}}},
      {"arange", "C1", {}, {{"n", integer(0)}, {"dtype", DType::I32}}, {}},
      {"arange", "C2", {}, {{"n", integer(2)}, {"dtype", DType::Bool}}, {}},
      {"arange", "C3", {}, {{"n", (integer(1) << 24) + 1}, {"dtype", DType::F32}}, {}},
      {"leaky_relu", "C1", {idx}, {{"alpha", 0.1}}, {}},
      {"leaky_relu", "C2", {x}, {{"alpha", nan}}, {}},
      {"elu", "C1", {idx}, {{"alpha", 1.0}}, {}},
      {"elu", "C2", {x}, {{"alpha", nan}}, {}},
      {"clamp", "C1", {idx}, {{"lo", 0.0}, {"hi", 1.0}}, {}},
      {"clamp", "C2", {x}, {{"lo", 1.0}, {"hi", 0.5}}, {}},
      {"logical_and", "C1", {flag, idx}, {}, {}},
      {"logical_and", "C2", {flag, boolean({3})}, {}, {}},
      {"logical_or", "C1", {x, x}, {}, {}},
      {"logical_or", "C2", {flag, boolean({2})}, {}, {}},
      {"logical_not", "C1", {u32({2})}, {}, {}},
      {"bitwise_and", "C1", {x, x}, {}, {}},
      {"bitwise_and", "C2", {u32({2}), u32({3})}, {}, {}},
      {"bitwise_or", "C1", {flag, flag}, {}, {}},
      {"bitwise_or", "C2", {u32({2}), u32({3})}, {}, {}},
      {"bitwise_xor", "C1", {u32({2}), TensorType{DType::I32, {2}}}, {}, {}},
      {"bitwise_xor", "C2", {u32({2}), u32({3})}, {}, {}},
      {"left_shift", "C1", {x, x}, {}, {}},
      {"left_shift", "C2", {u32({2}), TensorType{DType::I32, {2}}}, {}, {}},
      {"left_shift", "C3", {u32({2}), u32({3})}, {}, {}},
      {"right_shift", "C1", {flag, u32({2})}, {}, {}},
      {"right_shift", "C2", {u32({2}), TensorType{DType::I32, {2}}}, {}, {}},
      {"right_shift", "C3", {u32({2}), u32({3})}, {}, {}},
      {"where", "C1", {x, x, x}, {}, {}},
      {"where", "C2", {flag, x, idx}, {}, {}},
      {"where", "C3", {flag, x, row}, {}, {}},
      {"sum", "C1", {flag}, reduction({0}), {}},
      {"sum", "C2", {x}, reduction({1, 0}), {}},
      {"prod", "C1", {flag}, reduction({0}), {}},
      {"prod", "C2", {x}, reduction({1, 0}), {}},
      {"reduce_max", "C1", {flag}, reduction({0}), {}},
      {"reduce_max", "C2", {x}, reduction({2}), {}},
      {"reduce_max_number", "C1", {flag}, reduction({0}), {}},
      {"reduce_max_number", "C2", {x}, reduction({2}), {}},
      {"reduce_min", "C1", {flag}, reduction({0}), {}},
      {"reduce_min", "C2", {x}, reduction({2}), {}},
      {"argmax", "C1", {flag}, {{"axis", integer(0)}}, {}},
      {"argmax", "C2", {x}, {{"axis", integer(2)}}, {}},
      {"argmin", "C1", {flag}, {{"axis", integer(0)}}, {}},
      {"argmin", "C2", {scalar}, {{"axis", integer(0)}}, {}},
      {"reshape", "C1", {x}, shapeOf({-1, 6}), {}},
      {"reshape", "C2", {x}, shapeOf({5}), {}},
      {"permute", "C1", {x}, {{"permutation", Integers{0, 0}}}, {}},
      {"narrow", "C1", {x}, range(2, 0, 1), {}},
      {"narrow", "C2", {x}, range(1, 2, 2), {}},
      {"pad", "C1", {x}, padding(-1, 0, 1, 0), {}},
      {"pad", "C2", {x}, padding(1, -1, 1, 0), {}},
      {"pad", "C3", {x}, padding(1, huge, 1, 0), {}},
      {"pad", "C4", {idx}, padding(1, 1, 1, 0.5), {}},
      {"flip", "C1", {x}, {{"axes", Integers{1, 0}}}, {}},
      {"roll", "C1", {x}, {{"axis", integer(2)}, {"shift", integer(0)}}, {}},
      {"roll", "C2", {x}, {{"axis", integer(1)}, {"shift", integer(3)}}, {}},
      {"concat", "C1", {}, {{"axis", integer(0)}}, {}},
      {"concat", "C2", {x, x}, {{"axis", integer(2)}}, {}},
      {"concat", "C3", {x, idx}, {{"axis", integer(0)}}, {}},
      {"concat", "C4", {x, f32({2, 4})}, {{"axis", integer(0)}}, {}},
      {"concat", "C5", {f32({1 << 30}), f32({1 << 30}), f32({1 << 30}), f32({1 << 30})}, {{"axis", integer(0)}}, {}},
      {"windows", "C1", {x}, window({{"stride", Integers{0}}, {"fill", 0.0}}), {}},
      {"windows", "C2", {x}, window({{"kernel", Integers{4}}, {"fill", 0.0}}), {}},
      {"windows", "C3", {f32({1 << 20})}, window({{"kernel", Integers{1 << 19}}, {"fill", 0.0}}), {}},
      {"windows", "C4", {idx}, window({{"fill", 0.5}}), {}},
      {"fold", "C1", {flag}, window({{"extents", Integers{4}}}), {}},
      {"fold", "C2", {f32({3, 2})}, window({{"extents", Integers{4, 1}}}), {}},
      {"fold", "C3", {f32({3, 2})}, window({{"extents", Integers{5}}}), {}},
      {"skew", "C1", {x}, skewed({{"stride", Integers{1, 1}}}), {}},
      {"skew", "C2", {x}, skewed({{"stride", Integers{0}}}), {}},
      {"skew", "C3", {x}, skewed({{"extents", Integers{0}}}), {}},
      {"skew", "C4", {idx}, skewed({{"fill", 0.5}}), {}},
      {"conv", "C1", {i32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, convolution(), {}},
      {"conv", "C2", {f32({2, 4, 4}), f32({3, 2, 3, 3})}, convolution(), {}},
      {"conv", "C3", {f32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, convolution({{"padding", Integers{0, -1}}}), {}},
      {"conv", "C4", {f32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, convolution({{"groups", integer(2)}}), {}},
      {"conv", "C5", {f32({1, 2, 4, 2}), f32({3, 2, 3, 3})}, convolution(), {}},
      {"conv", "C6", {f32({16, 64, 1024, 1024}), f32({1, 64, 3, 3})}, convolution(), {}},
      {"conv_transpose", "C1", {i32({1, 2, 4, 4}), f32({2, 3, 3, 3})}, transposed(), {}},
      {"conv_transpose", "C2", {f32({2, 4, 4}), f32({2, 3, 3, 3})}, transposed(), {}},
      {"conv_transpose", "C3", {f32({1, 2, 4, 4}), f32({2, 3, 3, 3})}, transposed({{"output_padding", Integers{0, 1}}}), {}},
      {"conv_transpose", "C4", {f32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, transposed(), {}},
      {"conv_transpose", "C5", {f32({1, 2, 4, 1}), f32({2, 3, 3, 2})}, transposed({{"padding", Integers{0, 1}}}), {}},
      {"conv_transpose", "C6", {f32({16, 64, 1024, 1024}), f32({64, 1, 3, 3})}, transposed(), {}},
      {"max_pool", "C1", {f32({2, 8})}, pooling(2, 0, false), {}},
      {"max_pool", "C2", {f32({1, 2, 8})}, pooling(2, 2, false), {}},
      {"max_pool", "C3", {f32({1, 2, 8})}, pooling(9, 0, false), {}},
      {"avg_pool", "C1", {i32({1, 2, 8})}, pooling(2, 0, true), {}},
      {"avg_pool", "C2", {f32({1, 2, 8})}, pooling(2, -1, true), {}},
      {"avg_pool", "C3", {f32({1 << 14, 1 << 13, 8})}, pooling(3, 1, true), {}},
      {"broadcast_to", "C1", {row}, shapeOf({0, 3}), {}},
      {"broadcast_to", "C2", {x}, shapeOf({3, 2}), {}},
      {"sum_to_shape", "C1", {flag}, shapeOf({3}), {}},
      {"sum_to_shape", "C2", {x}, shapeOf({2}), {}},
      {"matmul", "C1", {idx, f32({3, 4})}, {}, {}},
      {"matmul", "C2", {x, row}, {}, {}},
      {"matmul", "C3", {x, f32({2, 4})}, {}, {}},
      {"matmul", "C4", {f32({4, 2, 3}), f32({5, 3, 2})}, {}, {}},
      {"matmul", "C5", {f32({1 << 20, 1}), f32({1, 1 << 20})}, {}, {}},
      {"embedding", "C1", {row, idx}, {}, {}},
      {"embedding", "C2", {x, row}, {}, {}},
      {"embedding", "C3", {f32({2, 1 << 20}), i32({1 << 20})}, {}, {}},
      {"one_hot", "C1", {x}, {{"depth", integer(3)}}, {}},
      {"one_hot", "C2", {idx}, {{"depth", integer(0)}}, {}},
      {"one_hot", "C3", {i32({1 << 20})}, {{"depth", integer(1) << 20}}, {}},
      {"where_causal", "C1", {i32({3, 3})}, {{"fill", 0.0}}, {}},
      {"where_causal", "C2", {x}, {{"fill", 0.0}}, {}},
      {"softmax", "C1", {idx}, {}, {}},
      {"softmax", "C2", {scalar}, {}, {}},
      {"log_softmax", "C1", {idx}, {}, {}},
      {"log_softmax", "C2", {scalar}, {}, {}},
      {"softmax_causal", "C1", {i32({3, 3})}, {}, {}},
      {"softmax_causal", "C2", {row}, {}, {}},
      {"cross_entropy", "C1", {idx, i32({2})}, mean(), {}},
      {"cross_entropy", "C2", {x, f32({2})}, mean(), {}},
      {"cross_entropy", "C3", {x, i32({2, 3})}, mean(), {}},
      {"cross_entropy", "C4", {x, i32({2})}, {{"reduction", std::string("median")}}, {}},
      {"cross_entropy", "C5", {x, i32({2}), f32({2})}, mean(), {}},
      {"cross_entropy", "C6", {x, i32({2})}, {{"reduction", std::string("mean")}, {"label_smoothing", 1.5}}, {}},
      {"layer_norm", "C1", {idx, row, row}, eps(1e-5), {}},
      {"layer_norm", "C2", {scalar, row, row}, eps(1e-5), {}},
      {"layer_norm", "C3", {x, row, f32({2})}, eps(1e-5), {}},
      {"layer_norm", "C4", {x, row, row}, eps(0), {}},
      {"cumsum", "C1", {flag}, {{"axis", integer(0)}, {"reverse", false}}, {}},
      {"cumsum", "C2", {x}, {{"axis", integer(2)}, {"reverse", false}}, {}},
      {"segment_sum", "C1", {flag, i32({2})}, segments(0, 4), {}},
      {"segment_sum", "C2", {x, idx}, segments(0, 4), {}},
      {"segment_sum", "C3", {x, i32({2})}, segments(-1, 4), {}},
      {"segment_sum", "C4", {x, i32({3})}, segments(0, 4), {}},
      {"segment_sum", "C5", {x, i32({2})}, segments(0, 0), {}},
      {"search_sorted", "C1", {i32({2, 2}), idx}, {}, {}},
      {"search_sorted", "C2", {i32({2}), x}, {}, {}},
      {"sum_of_runs", "C1", {flag, i32({2}), i32({3})}, {{"axis", integer(0)}}, {}},
      {"sum_of_runs", "C2", {x, i32({2}), i32({3})}, {{"axis", integer(2)}}, {}},
      {"sum_of_runs", "C3", {x, i32({32769}), i32({3})}, {{"axis", integer(0)}}, {}},
      {"sum_of_runs", "C4", {x, i32({2}), i32({1})}, {{"axis", integer(0)}}, {}},
      {"sum_of_runs", "C5", {f32({1, 1 << 20}), i32({2}), i32({(1 << 20) + 1})}, {{"axis", integer(0)}}, {}},
      {"index_select", "C1", {x, idx}, {{"axis", integer(0)}}, {}},
      {"index_select", "C2", {x, i32({2})}, {{"axis", integer(2)}}, {}},
      {"index_select", "C3", {f32({1, 1 << 20}), i32({1 << 20})}, {{"axis", integer(0)}}, {}},
      {"take_along_axis", "C1", {x, x}, {{"axis", integer(0)}}, {}},
      {"take_along_axis", "C2", {x, idx}, {{"axis", integer(2)}}, {}},
      {"take_along_axis", "C3", {x, i32({3, 3})}, {{"axis", integer(1)}}, {}},
      {"scatter_add", "C1", {x, idx, idx}, {{"axis", integer(0)}}, {}},
      {"scatter_add", "C2", {x, x, x}, {{"axis", integer(0)}}, {}},
      {"scatter_add", "C3", {x, idx, f32({2, 4})}, {{"axis", integer(1)}}, {}},
      {"scatter_add", "C4", {x, idx, x}, {{"axis", integer(2)}}, {}},
      {"scatter_add", "C5", {x, i32({3, 3}), f32({3, 3})}, {{"axis", integer(1)}}, {}},
      {"merge_order", "C1", {x}, {{"axis", integer(0)}, {"run", integer(1)}}, {}},
      {"merge_order", "C2", {i32({4})}, {{"axis", integer(1)}, {"run", integer(1)}}, {}},
      {"merge_order", "C3", {i32({4})}, {{"axis", integer(0)}, {"run", integer(0)}}, {}},
      {"sort", "C1", {flag}, {{"axis", integer(0)}, {"descending", false}}, {}},
      {"sort", "C2", {x}, {{"axis", integer(2)}, {"descending", false}}, {}},
      {"sort", "C3", {f32({1 << 24})}, {{"axis", integer(0)}, {"descending", false}}, {}},
      {"top_k", "C1", {flag}, {{"axis", integer(0)}, {"k", integer(1)}}, {}},
      {"top_k", "C2", {x}, {{"axis", integer(2)}, {"k", integer(1)}}, {}},
      {"top_k", "C3", {x}, {{"axis", integer(1)}, {"k", integer(4)}}, {}},
      {"top_k", "C4", {f32({1 << 13, 1024})}, {{"axis", integer(1)}, {"k", integer(1)}}, {}},
      {"draw_token", "C1", {row, count, share, share, share}, {}, {}},
      {"draw_token", "C2", {x, count, share, share, f32({3})}, {}, {}},
      {"draw_token", "C3", {f32({2, 1 << 24}), count, share, share, share}, {}, {}},
      {"rank_chunks", "C1", {row}, {{"chunk", integer(4)}}, {}},
      {"rank_chunks", "C2", {x}, {{"chunk", integer(3)}}, {}},
      {"rank_chunks", "C3", {x}, {{"chunk", integer(1) << 30}}, {}},
      {"draw_from_chunks", "C1", {ranks, ranks, ranks, count, share, share, share}, {{"length", integer(3)}}, {}},
      {"draw_from_chunks", "C2", {ranks, ranks, f32({2, 1, 4}), share, share, share, share}, {{"length", integer(3)}}, {}},
      {"draw_from_chunks", "C3", {ranks, ranks, f32({2, 1, 4}), count, share, share, share}, {{"length", integer(5)}}, {}},
      {"cotangent", "C1", {}, shapeOf({0}), {}},
      {"custom_gradient", "C1", {x, x, x}, {{"results", integer(1)}}, {}},
      {"custom_gradient", "C2", {idx, idx}, {{"results", integer(1)}}, {}},
      {"custom_gradient", "C3", {x, x, row, x}, {{"results", integer(1)}}, {}},
      {"categorical", "C1", {idx, key}, {{"axis", integer(0)}, {"salt", integer(0)}}, {}},
      {"categorical", "C2", {x, x}, {{"axis", integer(0)}, {"salt", integer(0)}}, {}},
      {"categorical", "C3", {x, key}, {{"axis", integer(2)}, {"salt", integer(0)}}, {}},
      {"categorical", "C4", {x, key}, {{"axis", integer(0)}, {"salt", integer(-1)}}, {}},
      {"dropout", "C1", {idx, key}, dropping(0.5, 0), {}},
      {"dropout", "C2", {x, idx}, dropping(0.5, 0), {}},
      {"dropout", "C3", {x, key}, dropping(1, 0), {}},
      {"dropout", "C4", {x, key}, dropping(0.5, -1), {}},
      {"rms_norm", "C1", {idx, row}, eps(1e-5), {}},
      {"rms_norm", "C2", {scalar, row}, eps(1e-5), {}},
      {"rms_norm", "C3", {x, f32({2})}, eps(1e-5), {}},
      {"rms_norm", "C4", {x, row}, eps(-1), {}},
      {"group_norm", "C1", {idx, row, row}, grouped(1, 1e-5), {}},
      {"group_norm", "C2", {row, row, row}, grouped(1, 1e-5), {}},
      {"group_norm", "C3", {x, row, f32({2})}, grouped(1, 1e-5), {}},
      {"group_norm", "C4", {x, row, row}, grouped(2, 1e-5), {}},
      {"group_norm", "C5", {x, row, row}, grouped(3, 0), {}},
      {"batch_norm", "C1", {idx, row, row}, eps(1e-5), {}},
      {"batch_norm", "C2", {row, row, row}, eps(1e-5), {}},
      {"batch_norm", "C3", {x, f32({2}), row}, eps(1e-5), {}},
      {"batch_norm", "C4", {x, row, row}, eps(0), {}},
      {"rope", "C1", {row}, turning(), {}},
      {"rope", "C2", {x}, turning({{"dims", integer(3)}}), {}},
      {"rope", "C3", {x}, turning({{"layout", std::string("spiral")}}), {}},
      {"rope", "C4", {x}, turning({{"base", 0.0}}), {}},
      {"rope", "C5", {x}, turning({{"offset", INT64_MAX}}), {}},
      {"rope", "C6", {x, f32({2})}, turning(), {}},
      {"einsum", "C1", {idx}, {{"equation", std::string("ij->ji")}}, {}},
      {"einsum", "C2", {x}, {{"equation", std::string("ij")}}, {}},
      {"einsum", "C3", {x}, {{"equation", std::string("i->i")}}, {}},
      {"einsum", "C4", {f32({2, 2})}, {{"equation", std::string("ii->i")}}, {}},
      {"einsum", "C5", {x, x}, {{"equation", std::string("ij,jk->ik")}}, {}},
      {"einsum", "C6", {x}, {{"equation", std::string("ij->ik")}}, {}},
      {"einsum", "C7", {f32({1 << 20}), f32({1 << 20})}, {{"equation", std::string("i,j->ij")}}, {}},
      {"kernel", "C1", {x}, userKernel("f32[2", 1), {}},
      {"kernel",
       "C2",
       {x},
       {{"label", std::string("mine")}, {"module", std::string("no")}, {"results", std::string("f32[2]")}, {"groups", Integers{1, 1, 1}}},
       {}},
      {"kernel", "C3", {x, x}, userKernel("f32[2]", 1), {}},
      {"kernel", "C4", {x}, userKernel("f32[2]", 0), {}},
      {"kernel", "C5", {x}, userKernel("f32[2]", 1, "array<f32, 100>"), {}},
      {"pack", "C1", {idx}, parts({0}, 64), {}},
      {"pack", "C2", {x, x}, parts({0}, 64), {}},
      {"pack", "C3", {x}, parts({32}, 64), {}},
      {"pack", "C4", {x, x}, parts({64, 0}, 128), {}},
      {"pack", "C5", {}, parts({}, 0), {}},
      {"update_slice", "C1", {x, i32({2})}, {{"offset", integer(0)}}, {}},
      {"update_slice", "C2", {x, row}, {{"offset", integer(4)}}, {}},
      {"group", "C1", {x}, {{"kind", std::string("map")}}, {}},
  };
  for (std::string_view op :
       {"add", "sub", "mul", "div", "min", "max", "pow", "equal", "not_equal", "same", "less", "less_equal", "greater", "greater_equal"}) {
    broken.push_back({op, "C1", {x, idx}, {}, {}});
    broken.push_back({op, "C2", {x, row}, {}, {}});
  }
  broken.push_back({"linear_recurrence", "C1", {x, row}, {{"axis", integer(0)}, {"reverse", false}}, {}});
  broken.push_back({"linear_recurrence", "C2", {x, x}, {{"axis", integer(2)}, {"reverse", false}}, {}});
  broken.push_back({"associative_scan", "C1", {flag}, scanned(0, adding(DType::F32)), {}});
  broken.push_back({"associative_scan", "C2", {x}, scanned(2, adding(DType::F32)), {}});
  broken.push_back({"associative_scan", "C3", {x}, scanned(0, adding(DType::I32)), {}});
  const auto reduced = [](int64_t axis, std::string combine) { return Attributes{{"axis", axis}, {"combine", std::move(combine)}}; };
  broken.push_back({"associative_reduce", "C1", {x, row}, reduced(0, adding(DType::F32)), {}});
  broken.push_back({"associative_reduce", "C2", {x}, reduced(-1, adding(DType::F32)), {}});
  broken.push_back({"associative_reduce", "C3", {x}, reduced(0, adding(DType::I32)), {}});
  breakLoop(broken);
  breakCausalConv(broken);
  breakScanTemplates(broken);
  breakSsd(broken);
  breakSelectiveScan(broken);
  for (std::string_view op : {"write_rows", "update_rows"}) {
    const Attributes first{{"axis", integer(0)}};
    broken.push_back({op, "C1", {x, idx, i32({})}, first, {}});
    broken.push_back({op, "C2", {x, x, i32({})}, {{"axis", integer(2)}}, {}});
    broken.push_back({op, "C3", {x, row, i32({})}, first, {}});
    broken.push_back({op, "C4", {x, x, idx}, first, {}});
  }
  for (std::string_view op : {"uniform", "normal", "gumbel"}) {
    broken.push_back({op, "C1", {idx}, {{"shape", Integers{2}}, {"salt", integer(0)}}, {}});
    broken.push_back({op, "C2", {key}, {{"shape", Integers{0}}, {"salt", integer(0)}}, {}});
    broken.push_back({op, "C3", {key}, {{"shape", Integers{2}}, {"salt", integer(1) << 31}}, {}});
  }
  for (const OpDef* op : allOps()) {
    const bool none_required = std::ranges::none_of(*op->attributes, &AttributeDef::required);
    bool one_float = op->operands->size() == 1 && none_required && op->constraints->size() == 1;
    if (one_float && (*op->constraints)[0].text == "the operand is f32") broken.push_back({*op->name, "C1", {idx}, {}, {}});
  }
  broken.push_back({"neg", "C1", {u32({2})}, {}, {}});
  const TensorType out = f32({1, 2, 3}), rows = f32({1, 2});
  breakAttention("scaled_dot_product_attention", {}, broken);
  breakAttention("attend", {}, broken);
  breakCachedAttention("cached_attention", broken);
  breakCachedAttention("attend_cache", broken);
  breakCachedAttention("attend_chunk", broken);
  breakQuantized(broken);
  breakAttention("attention_gradient", {out, rows, out, rows}, broken);
  breakAttention("attend_gradient_queries", {out, rows, rows}, broken);
  breakAttention("attend_gradient_keys", {out, rows, rows}, broken);
  breakAttention("attend_whole", {}, broken);
  breakAttention("attend_gradient_whole", {out, rows}, broken);
  const TensorType heads = f32({4, 2, 3}), one_head = f32({2, 2, 3});
  broken.push_back({"attend_gradient_whole",
                    "C9",
                    {heads, one_head, one_head, heads, f32({4, 2})},
                    {{"causal", false}, {"offset", integer(0)}, {"scale", 1.0}},
                    {}});
  return broken;
}

}  // namespace lockstep::graph::testing
