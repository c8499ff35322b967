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
REPLAYED = declare(
    "RUN008",
    Stage.RUNTIME,
    "replays follow inputs that are written in between, leave outputs alone and take them as inputs",
)
RACE = declare("COD005", Stage.CODEGEN, "a kernel computes the same in whatever order the programs of its grid run")

# Operators
OP_DIFFERS = declare(
    "OPS001", None, "a compiled call gives what eager gives: values, dtype, sizes, strides, aliasing, writes, gradients"
)
OP_REFUSED = declare("OPS002", None, "what eager takes, the compiler takes")
OP_ACCEPTED = declare("OPS003", None, "what eager refuses, a compiled call refuses")
OP_ENDED = declare("OPS004", None, "the process survives compiling and calling")

# AutoDeploy
PASS_RAISES = declare("AD001", None, "no transform raises")
PASS_METADATA = declare("AD002", None, "a transform gives every new node a shape and a dtype")
PASS_WRONG_METADATA = declare(
    "AD003", None, "the shape and dtype that a transform gives a new node are those that its op makes"
)
PASS_LOG = declare("AD004", None, "a transform logs as many matches as it reports")
PASS_MATCHES = declare("AD005", Stage.FUSION, "fusions match exactly as often as the contract says")
PASS_INPLACE_ORDER = declare("AD006", None, "no value is read after a fused kernel wrote into it")
PASS_STREAMS = declare("AD007", Stage.RUNTIME, "work on a second stream waits for what it reads, and is waited for")

# Torch-TensorRT
DIM_SPECIALIZED = declare("TRT001", Stage.CAPTURE, "a dim that the contract marks dynamic stays symbolic")
CACHE_WRITE = declare("TRT002", Stage.CODEGEN, "a layer that updates a cache writes the positions that the op writes")
ENGINE_KEY = declare("TRT003", Stage.CACHE, "the key of the engine cache tells different graphs apart")
BUILD_RAISES = declare("TRT004", None, "compiling and building engines raises nothing")
COMPILE_WRITES = declare("TRT005", Stage.POSTGRAD, "compiling leaves the user's buffers alone")
MODE_RAISES = declare("TRT006", Stage.RUNTIME, "every way of running the compiled module runs")
ENGINE_REPLAY = declare("TRT007", Stage.RUNTIME, "a recorded CUDA graph of an engine replays what eager computes")
PREALLOCATED = declare("TRT008", Stage.RUNTIME, "with pre-allocated outputs the module computes what eager computes")
JIT_ENTRY = declare("TRT009", Stage.RUNTIME, "torch.compile(backend='torch_tensorrt') computes what eager computes")
SAVED_ENGINE = declare(
    "TRT010", Stage.RUNTIME, "a saved program loaded in a fresh process computes what eager computes"
)
CONVERTED = declare("TRT011", Stage.CODEGEN, "the layers of an op give its shape, and floats where it gives floats")
