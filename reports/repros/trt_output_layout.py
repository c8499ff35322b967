"""What Torch-TensorRT returns has not eager's strides and is never a view of an input: an engine gives contiguous tensors of its own.

`x.t()` is a copy, `(x * 2).t()` has other strides; a write to a returned view does not reach the caller. Documented nowhere; callers that
use `view` on the result or write through it see it. Needs a GPU to show (the suite sees it without one, at codegen)."""

import torch
import torch_tensorrt


class Transposed(torch.nn.Module):
    def forward(self, x):
        return x.t(), (x * 2.0).t()


x = torch.randn(4, 6).cuda()
compiled = torch_tensorrt.dynamo.compile(torch.export.export(Transposed(), (x,)), inputs=[x], min_block_size=1)
(view, result), (eager_view, eager_result) = compiled(x), Transposed()(x)
shares = view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
print(f"strides {result.stride()}, eager has {eager_result.stride()}; the view shares the input's storage: {shares}, in eager True")
raise SystemExit("strides or aliasing differ" if not shares or result.stride() != eager_result.stride() else 0)
