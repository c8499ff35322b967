"""A TensorRT-LLM tree in small, for what needs none; the real one, where there is one, for the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.backends.autodeploy.loader import Missing, load

MODULES = {
    "tensorrt_llm/__init__.py": "raise RuntimeError('the __init__ of tensorrt_llm ran')\n",
    "tensorrt_llm/version.py": "__version__ = '9.8.7'\n",
    "tensorrt_llm/mapping.py": "raise RuntimeError('mapping needs compiled parts')\n",
    "tensorrt_llm/_torch/__init__.py": "raise RuntimeError('the __init__ of _torch ran')\n",
    "tensorrt_llm/_torch/auto_deploy/__init__.py": "from . import compat\n",
    "tensorrt_llm/_torch/auto_deploy/compat.py": (
        "try:\n    import tensorrt_llm.mapping\n    BUILT = True\nexcept ModuleNotFoundError as error:\n"
        "    BUILT, MISSING = False, error.name\nfrom tensorrt_llm.logger import logger\n"
    ),
    "tensorrt_llm/_torch/auto_deploy/config/default.yaml": (
        "transforms:\n  fuse_known:\n    stage: post_load_fusion\n    enabled: false\n  fuse_bare:\n    enabled: true\n"
    ),
    "tensorrt_llm/_torch/auto_deploy/transform/library/known.py": (
        "@TransformRegistry.register('fuse_known')\nclass FuseKnown:\n    pass\n\n\n"
        "@TransformRegistry.register('fuse_bare')\nclass FuseBare:\n    pass\n\n\n"
        "@TransformRegistry.register('fuse_unlisted')\nclass FuseUnlisted:\n    pass\n"
    ),
    "tensorrt_llm/_torch/auto_deploy/custom_ops/rope.py": (
        "@torch.library.custom_op('auto_deploy::quick_rope', mutates_args=())\ndef quick_rope(x):\n    pass\n"
    ),
    "tensorrt_llm/_torch/compilation/__init__.py": "raise RuntimeError('the __init__ of compilation ran')\n",
    "tensorrt_llm/_torch/compilation/remove_copy_pass.py": "from tensorrt_llm.logger import logger\nNAME = 'legacy'\n",
    "tests/unittest/auto_deploy/test_known.py": (
        "def test_fuses():\n    run('fuse_known')\n    assert matches == 1\n\n\n"
        "def test_two_consumers():\n    run('fuse_known')\n    assert num_matches == 0\n"
    ),
    "tests/unittest/auto_deploy/test_bare.py": "def test_fuses():\n    run('fuse_bare')\n    assert matches == 1\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name, text in MODULES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No AutoDeploy anywhere."""
    monkeypatch.delenv("TRTLLM_SRC", raising=False)
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "no-cache"))


@pytest.fixture(scope="session")
def harness():
    from conformance.autodeploy.harness import Harness

    try:
        return Harness(load())
    except Missing as error:
        pytest.skip(str(error))
