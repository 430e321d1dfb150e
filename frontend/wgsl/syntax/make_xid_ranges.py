# SPDX-License-Identifier: Apache-2.0
"""Prints xid_ranges.inc from the Unicode data that Python has:  python3 make_xid_ranges.py > xid_ranges.inc

WGSL names Unicode 14.0.0, so it must be a Python with that version: 3.11.
"""

import sys
import unicodedata

if unicodedata.unidata_version != "14.0.0":
    sys.exit(f"Unicode 14.0.0 is needed, this Python has {unicodedata.unidata_version}")


def ranges(prefix):
    """First and last of each run of code points above ASCII that make an identifier behind the prefix."""
    result = []
    for c in range(0x80, 0x110000):
        if 0xD800 <= c <= 0xDFFF or not (prefix + chr(c)).isidentifier():
            continue
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def show(name, prefix):
    texts = [f"{{{a:#x}, {b:#x}}}" for a, b in ranges(prefix)]
    print(f"constexpr CodeRange {name}[] = {{")
    for i in range(0, len(texts), 6):
        print(f"    {', '.join(texts[i:i + 6])},")
    print("};")


print("// SPDX-License-Identifier: Apache-2.0")
print("// Made by make_xid_ranges.py from Unicode 14.0.0: code points above ASCII, first and last of each range.")
show("kXidStart", "")
show("kXidContinue", "a")
