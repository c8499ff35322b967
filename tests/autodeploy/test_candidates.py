"""Reading graph dumps, and the fusion candidates in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.autodeploy import candidates, checklist, dumps, sources
from conformance.autodeploy.commands import candidates_command
from conformance.errors import UsageError

DUMPS = Path(__file__).resolve().parents[2] / "fixtures" / "dumps" / "two_layers"
HEAD = "# Transform: fuse\n# Stage: compile\n# GraphModules found: 1\n\n# GraphModule: (root)\n\n"


def folder(tmp_path: Path, *lines: str) -> dumps.Folder:
    (tmp_path / "001_compile_fuse.txt").write_text(HEAD + "\n".join(lines) + "\n")
    return dumps.read_folder(tmp_path)


def test_what_autodeploy_writes_is_read_whole():
    read = dumps.read_folder(DUMPS)
    assert [(d.stage, d.transform) for d in read.dumps] == [
        ("post_export", "cleanup_noop_slice"),
        ("pattern_matcher", "match_rmsnorm_pattern"),
        ("post_load_fusion", "fuse_rmsnorm"),
    ]
    assert read.broken == []
    graph = read.last.graphs[0]
    cat = graph.nodes["layers_0_cat"]
    assert cat.op == "aten.cat" and cat.inputs == ["layers_0_neg", "layers_0_slice_2"]
    assert graph.nodes["layers_0_add_3"].users == ["flashinfer_rms_norm_default_1", "layers_0_add_5"]
    assert graph.nodes["layers_0_getitem_2"].op == "getitem"
    assert graph.outputs == ["layers_1_add_11"]


def test_the_candidates_of_two_decoder_layers():
    found = {c.name: c for c in candidates.find(dumps.read_folder(DUMPS), None)}
    assert {name: (c.kind, c.count) for name, c in found.items()} == {
        "rope": ("attention", 4),
        "add_rmsnorm": ("norm", 3),
        "sigmoid_square_mul": ("epilogue", 2),
    }
    assert found["sigmoid_square_mul"].pattern == "sigmoid → square → mul → mul"


def test_before_norms_are_matched_they_are_candidates_by_hand():
    first = dumps.Folder(DUMPS, dumps.read_folder(DUMPS).dumps[:1], [])
    found = {c.name: c.count for c in candidates.find(first, None)}
    assert found["add_rmsnorm"] == 3 and found["rmsnorm"] == 1


def test_the_residual_stream_does_not_make_one_region_of_all_layers():
    graph = dumps.read_folder(DUMPS).last.graphs[0]
    assert max(len(region.nodes) for region in candidates.regions(graph, "")) == 5


def test_a_kernel_that_exists_is_evidence_with_file_and_symbol(tree):
    rope = next(c for c in candidates.find(dumps.read_folder(DUMPS), tree) if c.name == "rope")
    assert (rope.lookup, rope.recommendation) == ("found", "use_existing_kernel")
    place = "tensorrt_llm/_torch/auto_deploy/custom_ops/rope.py:1"
    assert rope.evidence == [f"{place} quick_rope (custom op auto_deploy::quick_rope)"]


def test_without_a_kernel_what_repeats_needs_one(tree):
    found = {c.name: c for c in candidates.find(dumps.read_folder(DUMPS), tree)}
    assert (found["sigmoid_square_mul"].lookup, found["sigmoid_square_mul"].recommendation) == (
        "not_found",
        "needs_triton_fallback",
    )
    assert found["add_rmsnorm"].recommendation == "defer"  # two ops are not worth a kernel


def test_without_a_checkout_nothing_is_recommended():
    for candidate in candidates.find(dumps.read_folder(DUMPS), None):
        assert candidate.recommendation == "defer"
        assert "no checkout to look for kernels in: set TRTLLM_SRC" in candidate.risks


def test_missing_shapes_defer(tree, tmp_path):
    chain = [
        "%x : 4x8 : torch.float32",
        "%a = aten.exp.default(%x : 4x8 : torch.float32) : ? : N/A",
        "%b = aten.sin.default(%a : ? : unknown) : 4x8 : torch.float32",
        "%c = aten.tanh.default(%b : 4x8 : torch.float32) : 4x8 : torch.float32",
        "%m = aten.mm.default(%c : 4x8 : torch.float32, %c : 4x8 : torch.float32) : 4x4 : torch.float32",
    ]
    again = [re.sub(r"%([abcm])\b", r"%\g<1>2", line).replace("%x", "%m") for line in chain[1:]]
    found = candidates.find(folder(tmp_path, *chain, *again, "output %m2"), tree)
    assert [(c.count, c.recommendation) for c in found] == [(2, "defer")]
    assert any("missing in the dump" in risk for risk in found[0].risks)


def test_a_transform_that_ran_and_left_the_pattern_is_a_risk(tree, tmp_path):
    library = tree / "tensorrt_llm" / "_torch" / "auto_deploy" / "transform" / "library" / "rope.py"
    library.write_text("@TransformRegistry.register('match_rope')\nclass MatchRope:\n    pass\n")
    sources.entries.cache_clear()
    read = dumps.read_folder(DUMPS)
    read.dumps[0].transform = "match_rope"
    rope = next(c for c in candidates.find(read, tree) if c.name == "rope")
    assert rope.risks[0].startswith("match_rope ran and left it")


# ------------------------------------------------------------------------------------------- half-written files


@pytest.mark.parametrize("cut", [0, 30, 100, 400, 3000])
def test_a_file_cut_anywhere_is_left_out_and_said(tmp_path, cut):
    for file in sorted(DUMPS.iterdir()):
        (tmp_path / file.name).write_text(file.read_text())
    last = max(tmp_path.iterdir())
    last.write_text(last.read_text()[:cut])
    read = dumps.read_folder(tmp_path)
    assert len(read.dumps) == 2 and read.last.transform == "match_rmsnorm_pattern"
    assert len(read.broken) == 1 and read.broken[0].startswith(last.name)


def test_a_file_that_is_no_text_is_left_out(tmp_path):
    (tmp_path / "001_compile_fuse.txt").write_text(HEAD + "%x : 4 : torch.float32\noutput %x\n")
    (tmp_path / "002_compile_other.txt").write_bytes(b"\xff\xfe\x00")
    assert dumps.read_folder(tmp_path).broken[0].startswith("002_compile_other.txt: cannot be read")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (None, "no folder of graph dumps"),
        ({}, "no graph dumps in"),
        ({"notes.txt": "hello"}, "no graph dumps in"),
        ({"001_compile_fuse.txt": "# Transform: fu"}, "can be read"),
    ],
)
def test_a_folder_with_nothing_to_read(tmp_path, files, said):
    path = tmp_path / "dumps"
    if files is not None:
        path.mkdir()
        for name, text in files.items():
            (path / name).write_text(text)
    with pytest.raises(UsageError, match=said) as error:
        dumps.read_folder(path)
    assert "\n" not in str(error.value)


# --------------------------------------------------------------------------------------------------- what is printed


def test_the_template(tree, monkeypatch):
    monkeypatch.setenv("TRTLLM_SRC", str(tree))
    result = CliRunner().invoke(candidates_command, [str(DUMPS), "--top", "1"])
    assert result.exit_code == 0
    assert result.output.splitlines()[2:] == [
        "Candidate: rope",
        "Affected graph pattern: mul → neg → cat → mul → add (attention, 4 times; "
        "005_post_load_fusion_fuse_rmsnorm.txt: layers_0_mul_2 … layers_0_add_1)",
        "Existing kernel lookup: found",
        "Evidence: tensorrt_llm/_torch/auto_deploy/custom_ops/rope.py:1 quick_rope (custom op auto_deploy::quick_rope)",
        "Recommendation: use_existing_kernel",
        "Strengths / weaknesses / risks:",
        "- + 4 ops become one, 4 times in this graph",
        "- + kernels for it exist: auto_deploy::quick_rope",
        "",
    ]


def test_json_for_programs(nothing):
    result = CliRunner().invoke(candidates_command, [str(DUMPS), "--json"])
    body = json.loads(result.output)
    assert body["dump"] == "005_post_load_fusion_fuse_rmsnorm.txt"
    assert {c["recommendation"] for c in body["candidates"]} == {"defer"}


# -------------------------------------------------------------------------------------------------------- checklist


def test_a_transform_that_has_all(tree):
    assert [(item.what, item.done) for item in checklist.review("fuse_known", tree)] == [
        ("registered", True),
        ("listed in default.yaml", True),
        ("tests cover a match", True),
        ("tests cover a non-match", True),
    ]


def test_what_is_missing_is_said(tree):
    bare = {item.what: item for item in checklist.review("fuse_bare", tree)}
    assert bare["listed in default.yaml"].evidence == "its entry has no stage, which its peers have"
    assert bare["tests cover a match"].done and not bare["tests cover a non-match"].done
    unlisted = {item.what: item.done for item in checklist.review("fuse_unlisted", tree)}
    assert unlisted == {
        "registered": True,
        "listed in default.yaml": False,
        "tests cover a match": False,
        "tests cover a non-match": False,
    }


def test_an_unknown_transform_suggests_near_names(tree):
    with pytest.raises(UsageError, match="did you mean fuse_known"):
        checklist.review("fuse_knwon", tree)
