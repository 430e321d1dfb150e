// SPDX-License-Identifier: Apache-2.0
// Tint's validation through Dawn's null device, which compiles and never runs.
import { create } from 'webgpu';

// Devices do not keep their instance, which is collected once nobody holds it.
const gpu = create(['backend=null']);

/// Opens the device. The result is a function: text -> ["line:column message", ...], empty when the text is a valid module.
export async function openTint() {
  const adapter = await gpu.requestAdapter();
  const wanted = ['shader-f16', 'subgroups'].filter((feature) => adapter.features.has(feature));
  const device = await adapter.requestDevice({ requiredFeatures: wanted });
  return async (text) => {
    device.pushErrorScope('validation');
    const info = await device.createShaderModule({ code: text }).getCompilationInfo();
    await device.popErrorScope();
    return info.messages.filter((message) => message.type === 'error').map((m) => `${m.lineNum}:${m.linePos} ${m.message}`);
  };
}
