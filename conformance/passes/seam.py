"""The private names of torch that pass authors use themselves: the pattern matcher, tracing, decompositions."""

from __future__ import annotations

import torch

from conformance.seam import Name, Seam
from conformance.stage import Stage

NO_STAGE: tuple[Stage, ...] = ()
PATTERNS = "torch._inductor.pattern_matcher"

NAMES = {
    "pattern_pass": Name(f"{PATTERNS}:PatternMatcherPass", NO_STAGE),
    "register_replacement": Name(f"{PATTERNS}:register_replacement", NO_STAGE),
    "fwd_only": Name(f"{PATTERNS}:fwd_only", NO_STAGE),
    "match_pattern": Name(f"{PATTERNS}:PatternExpr.match", NO_STAGE),
    "match_outputs": Name(f"{PATTERNS}:MultiOutputPattern.match", NO_STAGE),
    "any_number": Name(f"{PATTERNS}:MULTIPLE", NO_STAGE),
    "mutation_region": Name(f"{PATTERNS}:get_mutation_region_id", NO_STAGE),
    "compute_mutation_regions": Name(f"{PATTERNS}:compute_mutation_region_ids", NO_STAGE),
    "custom_pass": Name("torch._inductor.custom_graph_pass:CustomGraphPass", NO_STAGE),
    "fake_mode": Name("torch._subclasses.fake_tensor:FakeTensorMode", NO_STAGE),
    "inductor_decompositions": Name("torch._inductor.decomposition:decompositions", NO_STAGE),
    "all_decompositions": Name("torch._decomp:decomposition_table", NO_STAGE),
}
seam = Seam("torch", lambda: str(torch.__version__), NAMES)
