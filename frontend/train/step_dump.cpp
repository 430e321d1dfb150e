// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/step_dump.h"

#include "runtime/memory_array.h"

namespace lockstep::detail {

// A training may end before its batches are complete; there are fewer then.
StepDump::~StepDump() {
  if (left_ > 0 && !batches_.tensors.empty()) (void)writeBatches().ok();
}

Status StepDump::write(std::string_view name, const io::TensorFile& file) const {
  return io::writeSafetensors(std::filesystem::path(folder_) / name, file);
}

void StepDump::begin(const std::shared_ptr<Session>& session, const io::TensorFile& start, const io::TensorFile& inputs) {
  session_ = session;
  (void)write("start.safetensors", start).orThrow();
  (void)write("inputs.safetensors", inputs).orThrow();
}

void StepDump::add(const std::vector<std::byte>& input) {
  const program::Program& program = session_->program();
  for (const program::InputPort& port : program.inputs) {
    if (!std::holds_alternative<program::BatchSource>(port.source)) continue;
    const program::Buffer& buffer = program[port.buffer];
    io::Array& array =
        batches_.tensors.try_emplace(port.name, io::Array{elementType(buffer.type.dtype), buffer.type.shape.extents(), {}}).first->second;
    const auto bytes = std::span(input).subspan(buffer.offset, elementBytes(buffer.type));
    array.data.insert(array.data.end(), bytes.begin(), bytes.end());
  }
  if (--left_ == 0) (void)writeBatches().orThrow();
}

Status StepDump::writeBatches() {
  for (const program::InputPort& port : session_->program().inputs) {
    const auto found = batches_.tensors.find(port.name);
    if (found == batches_.tensors.end()) continue;
    const graph::TensorType& type = session_->program()[port.buffer].type;
    found->second.shape.insert(found->second.shape.begin(), static_cast<int64_t>(found->second.data.size() / elementBytes(type)));
  }
  return write("batches.safetensors", std::exchange(batches_, {}));
}

}  // namespace lockstep::detail
