// SPDX-License-Identifier: Apache-2.0
// Tint's validation through Dawn's null device, which compiles and never runs.
import { create } from 'webgpu';

// Devices do not keep their instance, which is collected once nobody holds it.
// The null device has what is still experimental, when it is allowed to.
const gpu = create(['backend=null', 'enable-dawn-features=allow_unsafe_apis']);

/// Opens the device. The result is a function: text -> ["line:column message", ...], empty when the text is a valid module.
export async function openTint() {
  const adapter = await gpu.requestAdapter();
  const known = ['shader-f16', 'subgroups', 'subgroup-size-control', 'chromium-experimental-subgroup-matrix'];
  const wanted = known.filter((feature) => adapter.features.has(feature));
  const device = await adapter.requestDevice({ requiredFeatures: wanted });
  return async (text) => {
    device.pushErrorScope('validation');
    const info = await device.createShaderModule({ code: text }).getCompilationInfo();
    await device.popErrorScope();
    return info.messages.filter((message) => message.type === 'error').map((m) => `${m.lineNum}:${m.linePos} ${m.message}`);
  };
}
