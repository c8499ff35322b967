"""Functions of rows whose number is known only when the program runs: each line that is printed cannot be compiled into one graph."""

import logging

import torch
from torch.nn import functional as F

logging.disable(logging.CRITICAL)
torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True
calls = """
y.cummax(0)[0]
y.roll(1, 0)
torch.cdist(y, x)
F.batch_norm(y, x[0], x[0].abs())
F.pad(y[None], (1, 1), mode="reflect")
F.conv1d(y.t()[None], x[:4, :4, None])
y.take_along_dim(y.argsort(1), 1)
torch.take(y, y.argmax(1))
y.quantile(0.5, 1)
torch.quantile(y, 0.5, 0)
torch.diff(y, dim=0)
torch.trapezoid(y, dim=0)
torch.linspace(0, 1, y.shape[0])
torch.kron(y, x[:2, :2])
torch.tensordot(y, x, dims=([1], [1]))
torch.cov(y.t())
torch.corrcoef(y.t())
torch.fft.fft(y, dim=0)
y.clone().t_()
y.logsumexp(0)
y.logsumexp(1)
y.chunk(2)
y.split(2)
y.tensor_split(2)
F.gaussian_nll_loss(y, y, y.abs() + 1)
torch.isin(y, x)
torch.combinations(y[:, 0])
torch.chain_matmul(y, x.t(), x)
torch.linalg.multi_dot([y, x.t(), x])
torch.linalg.svdvals(y)
torch.unravel_index(y.argmax(), y.shape)
F.scaled_dot_product_attention(y[None], y[None], y[None])
F.scaled_dot_product_attention(y[None], x[None], x[None])
torch.diagonal(y)
torch.diagonal_scatter(y, y.diagonal() + 1)
y[y.shape[0] - 1], y[-1]
"""
x, mask, refused = torch.arange(24.0).view(6, 4), torch.arange(6) < 4, []
for text in calls.strip().splitlines():
    call = eval(f"lambda x, y: ({text})", {"torch": torch, "F": F})
    torch._dynamo.reset()
    try:
        torch.compile(lambda x, mask, call=call: call(x, x[mask]), fullgraph=True)(x, mask)
    except Exception:  # refused by one of many errors: any of them is a refusal, since eager gives a result
        print(text)
        refused.append(text)
if refused:
    raise SystemExit(f"torch {torch.__version__}: {len(refused)} functions are refused")
