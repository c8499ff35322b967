"""ptxas 12.9 (as Triton 3.8.0 ships it) loses a constant: a window of adaptive average pooling is empty, and the pool is NaN on sm_90.

LLVM packs two 16-bit numbers into one register of which one half is undefined, and adds {0, 9} to it (`add.s16x2`). ptxas keeps the defined half as the low one and adds
the constant's low half, 0: `(9 + 6 * x) // 4` becomes `6 * x // 4`. With a GPU the pool is compared with eager; with none the machine code is read.
Exits 1 where the defect shows, 0 where it does not, 2 where neither can be looked at.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget


@triton.jit
def window(x_ptr, out_ptr, size: tl.constexpr):
    index = tl.program_id(0) * size + tl.arange(0, size)
    inside = index < 16
    row, x = (index // 4) % 2, index % 4
    above = (5 * row) // 2
    first = (3 * x) // 2
    end = (9 + 6 * x) // 4
    one = tl.load(x_ptr + 6 * above + first, (first < end) & inside, other=0.0)
    two = tl.load(x_ptr + 6 * above + first + 1, (first + 1 < end) & inside, other=0.0)
    tl.store(out_ptr + index, one + two, inside)


def machine_code() -> str:
    source = triton.compiler.ASTSource(
        fn=window, signature={"x_ptr": "*fp32", "out_ptr": "*fp32", "size": "constexpr"}, constexprs={"size": 16}
    )
    kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 1})
    disassembler = Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(kernel.asm["cubin"])
        return subprocess.run([str(disassembler), "-c", file.name], capture_output=True, text=True, check=True).stdout


def main() -> int:
    if torch.cuda.is_available():
        x = torch.randn(1, 2, 5, 6, device="cuda")

        def pooled(x):
            return torch.nn.functional.interpolate(x, size=(2, 4), mode="area")

        right = torch.allclose(torch.compile(pooled)(x), pooled(x))
        print("the pool is right" if right else "the pool differs from eager's")
        return 0 if right else 1
    code = machine_code()
    # 9 as a number of its own, or in the upper half of a packed constant.
    found = re.findall(r"\b0x9\b|\b0x90000\b|\b0x90009\b", code)
    packed = [line.strip() for line in code.splitlines() if "16x2" in line]
    print(f"the constant 9: {len(found)} times in the machine code; packed additions: {packed}")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
