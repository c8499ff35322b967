"""How a repro calls Torch-TensorRT: text that goes into the repro, and imports nothing of this project."""

from __future__ import annotations

from conformance.backends.torch_tensorrt.compilation import SETTINGS

LOWERED = '''
def lowered(module):
    """The graph that Torch-TensorRT partitions and converts: exported, decomposed, lowered."""
    if not torch.cuda.is_available():  # torch_tensorrt asks for a device when it is imported
        torch.cuda.get_device_capability = lambda *_: (9, 0)
        torch.cuda.current_device = lambda: 0
    from torch_tensorrt.dynamo import CompilationSettings
    from torch_tensorrt.dynamo.lowering import get_decompositions, post_lowering

    program = torch.export.export(module, inputs()).run_decompositions(get_decompositions())
    return post_lowering(program.module(), CompilationSettings())
'''

OPTIONS = ", ".join(f"{name}={value!r}" for name, value in SETTINGS.items())
BUILT = f'''
def built(module):
    """The whole module: its engines run on a GPU only."""
    import torch_tensorrt

    program = torch.export.export(module.eval(), inputs())
    return torch_tensorrt.dynamo.compile(program, inputs=list(inputs()), {OPTIONS})
'''


def entry(stage: str) -> tuple[str, str] | None:
    """What is lowered runs anywhere; a repro of an engine would need the GPU that triage does without."""
    if stage in ("decomposition", "postgrad"):
        return "lowered", LOWERED
    return None if stage else ("built", BUILT)
