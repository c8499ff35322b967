"""IDs of findings that are made while a program is measured: by comparing, replaying or loading it."""

from __future__ import annotations

from conformance.checks.registry import declare
from conformance.stage import Stage

LADDER = declare("LAD001", None, "the program as of each stage computes what eager computes")
BASELINE = declare("BAS001", None, "facts are those of the recorded run of the same version")
UNEXPLAINED_BLOCK = declare("BLK001", None, "a stage is blocked only by a stage that the same run reports")
LOST_SIGHT = declare("BAS002", None, "what the recorded run of the same version could observe can still be observed")
GUARD_MODEL = declare("FUZ001", Stage.CAPTURE, "recompiles exactly when the guard model says")
BACKWARD_CAPTURED = declare("CAP006", Stage.CAPTURE, "compiled autograd captures the backward pass")

# AutoDeploy
PASS_RAISES = declare("AD001", None, "no transform raises")
PASS_METADATA = declare("AD002", None, "transforms keep the shape and dtype of every node")
PASS_INPLACE_ORDER = declare("AD003", None, "transforms keep in-place writes in order with what reads them")
PASS_NO_MATCH_LEFT = declare("AD004", None, "a transform leaves nothing behind that it would match again")
PASS_MATCHES = declare("AD005", None, "transforms match exactly as often as the contract says")
KERNEL_CHOICE = declare("AD006", None, "each choice of kernels computes what eager computes")

# Torch-TensorRT
DIM_SPECIALIZED = declare("TRT001", Stage.CAPTURE, "a dynamic dim stays symbolic")
CONVERTER_DTYPE = declare("TRT002", Stage.CODEGEN, "a converter keeps dtype and shape of what it converts")
ENGINE_KEY = declare("TRT003", Stage.CACHE, "the engine cache tells different graphs apart")
BUILD_RAISES = declare("TRT004", None, "the engine builds")
COMPILE_WRITES = declare("TRT005", Stage.POSTGRAD, "compiling leaves the user's buffers alone")
MODE_RAISES = declare("TRT006", Stage.RUNTIME, "every runtime mode runs")
ENGINE_REPLAY = declare("TRT007", Stage.RUNTIME, "a recorded CUDA graph of an engine replays what eager computes")
PREALLOCATED = declare("TRT008", Stage.RUNTIME, "pre-allocated outputs are what eager computes")
JIT_ENTRY = declare("TRT009", Stage.RUNTIME, "torch.compile(backend='torch_tensorrt') computes what eager computes")
SAVED_ENGINE = declare("TRT010", Stage.RUNTIME, "a saved engine loaded in a fresh process computes what eager computes")
