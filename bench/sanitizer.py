#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times kernels on the reference with and without the sanitizer, beside a Vulkan device.

usage: bench/sanitizer.py build/dev/tools/lockstep [DEVICE]      (DEVICE: vulkan if it is not named)
"""
import json, math, pathlib, statistics, subprocess, sys

MEGA = 1 << 20
KERNELS = {
    "matrix_product": ("16,16", ["0.0=fill:f32[65536]=0.25", "0.1=fill:f32[65536]=0.5", "0.2=zeros:262144"]),
    "softmax": ("512", ["0.0=fill:f32[524288]=0.5", f"0.1=zeros:{2 * MEGA}"]),
    "transpose": ("64,64", [f"0.0=fill:f32[{MEGA}]=1.5", f"0.1=zeros:{4 * MEGA}"]),
    "convolution": ("32,32", ["0.0=fill:f32[262144]=0.5", "0.1=fill:f32[25]=0.04", "0.2=zeros:1048576"]),
    "bodies": ("32", ["0.0=iota:f32[8192]", "0.1=zeros:32768"]),
    "histogram": ("256", [f"0.0=iota:u32[{MEGA}]", "0.1=zeros"]),
    "scan": ("2048", ["0.0=fill:f32[524288]=0.5", f"0.1=zeros:{2 * MEGA}"]),
    "adam": ("4096", [f"0.0=fill:f32[{MEGA}]=1", f"0.1=fill:f32[{MEGA}]=0.5", f"0.2=fill:f32[{MEGA}]=0.1", f"0.3=fill:f32[{MEGA}]=0.2"]),
}
ALL = "race,memory,integer,float,loop,barrier,subgroup"
MODES = {"off": [], "races": ["--sanitize=race"], "all but error": [f"--sanitize={ALL}"], "error": ["--sanitize=error"]}


def seconds(command, repeats):
    shown = subprocess.run(command + ["--repeat", str(repeats), "--json"], check=True, capture_output=True, text=True).stdout
    return statistics.median(json.loads(shown)["seconds"])


def main():
    tool, device = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "vulkan"
    folder = pathlib.Path(__file__).parent / "sanitizer"
    ratios = {mode: [] for mode in MODES}
    print(f"| kernel | {device}, ms | " + " | ".join(MODES) + " |")
    print("|---|---" + "|---" * len(MODES) + "|")
    for name, (groups, binds) in KERNELS.items():
        command = [tool, "run", str(folder / f"{name}.wgsl"), "--dispatch", groups]
        for bind in binds:
            command += ["--bind", bind]
        base = seconds(command + ["--device", device], 9)
        row = []
        for mode, options in MODES.items():
            ratio = seconds(command + ["--device", "reference"] + options, 3 if mode == "error" else 7) / base
            ratios[mode].append(ratio)
            row.append(f"{ratio:.2f}")
        print(f"| {name} | {base * 1e3:.2f} | " + " | ".join(row) + " |", flush=True)
    means = [math.exp(statistics.fmean(map(math.log, ratios[mode]))) for mode in MODES]
    print("| geometric mean | | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")


if __name__ == "__main__":
    main()
