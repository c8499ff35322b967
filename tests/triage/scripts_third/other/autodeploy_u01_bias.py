"""No report known: AutoDeploy's matcher of attention written out drops a bias that broadcasts over the heads."""

import torch
from tensorrt_llm._torch.auto_deploy.export import torch_export_to_gm
from tensorrt_llm._torch.auto_deploy.transform.optimizer import InferenceOptimizer


class Attention(torch.nn.Module):
    def forward(self, q, k, v, bias):
        scores = torch.matmul(q, k.transpose(2, 3)) * 0.25 + bias
        weights = torch.nn.functional.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        return torch.matmul(torch.nn.functional.dropout(weights, 0.0, self.training), v)


torch.manual_seed(0)
model = Attention().eval()
inputs = [torch.randn(2, 3, 11, 16) for _ in range(3)] + [torch.randn(2, 1, 11, 11)]
want = model(*inputs)
graph = torch_export_to_gm(model, args=tuple(inputs), clone=True)
transforms = {
    "cleanup_noop_slice": {"stage": "post_export"},
    "cleanup_noop_add": {"stage": "post_export"},
    "match_repeat_kv": {"stage": "pattern_matcher"},
    "match_eager_attention": {"stage": "pattern_matcher"},
    "match_sdpa_to_torch_attention": {"stage": "pattern_matcher"},
}
with torch.no_grad():
    got = InferenceOptimizer(None, transforms)(None, graph)(*inputs)
torch.testing.assert_close(got, want)
