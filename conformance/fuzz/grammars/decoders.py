"""Parts of decoder layers, written as models write them and a little otherwise: norms after adds, attention by hand, rotary embeddings,
gated layers, routing, shared weights. Passes that look for these patterns must take what is the same and leave what is not."""

from __future__ import annotations

from conformance.fuzz.grammar import Grammar, names

HEAD = """
def numbers(shape, at):
    values = (torch.arange(torch.Size(shape).numel()) * 37 + 11 * at) % 4099  # a prime: no two are equal
    return (values.float() / 2000 - 0.9).view(shape)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for at, (name, shape) in enumerate($parameters.items()):
            values = numbers(shape, at + 3) / (shape[-1] ** 0.5 if len(shape) > 1 else 1)
            setattr(self, name, torch.nn.Parameter(values))
"""
TAIL = """
f = Model().to($dtype)
f.dynamic = $dynamic
"""
DTYPES = names("torch.float32", "torch.bfloat16", "torch.float16")
DYNAMIC = {"nothing": "{}", "batch": '{(0, 0): "b", (1, 0): "b"}', "length": '{(0, 1): "s", (1, 1): "s"}'}

NORMS = (
    HEAD
    + """
    def forward(self, x, y):
        $add
        $norm
        $then
        return $outputs
"""
    + TAIL
    + """
def inputs():
    return numbers((2, 5, 16), 0).to($dtype), numbers((2, 5, 16), 1).to($dtype)
"""
)
ADDS = {
    "none": "h = x",
    "residual": "h = x + y",
    "residual first": "h = y + x",
    "number": "h = x + 1.0",
    "scaled": "h = torch.add(x, y, alpha=2)",
    "row": "h = x + self.row",
    "itself": "x = x * 1.5\nh = x + x",
    "float": "h = x.float() + y.float()",
    "float and back": "h = (x.float() + y.float()).to(x.dtype)",
    "of a product": "h = F.linear(x, self.weight) + y",
    "reshaped": "h = (F.linear(x.reshape(-1, 16), self.weight)).reshape(y.shape) + y",
    "in place": "x = x.clone()\nh = x.add_(y)",
    "one position": "h = x + y[:, :1]",
    "zeros": "h = x + torch.zeros(16, dtype=x.dtype)",
    "zeros of more dims": "h = x[0, 0] + torch.zeros(2, 5, 16, dtype=x.dtype)",
    "zeros of a wider dtype": "h = x + torch.zeros(2, 5, 16, dtype=torch.float64)",
    "transposed twice": "h = x.transpose(1, 2).contiguous().transpose(1, 2) + y",
    "sliced whole": "h = x[:, 0:] + y",
    "subtracted": "h = x - y",
}
NORM_FORMS = {
    "rms": "wide = h.to(torch.float32)\nn = self.scale * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(h.dtype)",
    "rms, weight in float": "wide = h.to(torch.float32)\n"
    "n = (self.scale.to(torch.float32) * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6))).to(h.dtype)",
    "rms, other eps": "wide = h.to(torch.float32)\nn = self.scale * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 0.3)).to(h.dtype)",
    "rms, weight plus one": "wide = h.to(torch.float32)\n"
    "n = (1 + self.scale) * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(h.dtype)",
    "rms, other dim": "wide = h.to(torch.float32)\n"
    "n = self.column * (wide * torch.rsqrt(wide.pow(2).mean(1, keepdim=True) + 1e-6)).to(h.dtype)",
    "rms, other power": "wide = h.abs().to(torch.float32)\n"
    "n = self.scale * (wide * torch.rsqrt(wide.pow(3).mean(-1, keepdim=True) + 1e-6)).to(h.dtype)",
    "rms, weight of many": "wide = h.to(torch.float32)\n"
    "n = self.table * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(h.dtype)",
    "rms, weight is a tensor of the call": "wide = h.to(torch.float32)\n"
    "n = y * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(h.dtype)",
    "rms, one number": "wide = h.to(torch.float32)\n"
    "n = self.one * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(h.dtype)",
    "rms, gated": "wide = h.to(torch.float32) * F.silu(y.to(torch.float32))\n"
    "n = self.scale * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(h.dtype)",
    "rms, grouped and gated": "wide = h.to(torch.float32) * F.silu(y.to(torch.float32))\nwide = wide.view(2, 5, 2, 8)\n"
    "wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)\nn = (wide.view(2, 5, 16) * self.scale).to(h.dtype)",
    "rms, read in between": "wide = h.to(torch.float32)\nspread = wide.pow(2).mean(-1, keepdim=True)\n"
    "n = self.scale * (wide * torch.rsqrt(spread + 1e-6)).to(h.dtype)\nx = x * spread",
    "library's": "n = F.rms_norm(h, (16,), self.scale.to(h.dtype), 1e-6)",
    "l2": "n = h * torch.rsqrt((h * h).sum(dim=-1, keepdim=True) + 1e-6)",
    "l2, in float": "wide = h.to(torch.float32)\nn = (wide * torch.rsqrt((wide * wide).sum(dim=-1, keepdim=True) + 1e-6)).to(h.dtype)",
    "l2, other dim": "n = h * torch.rsqrt((h * h).sum(dim=1, keepdim=True) + 1e-6)",
    "l2, of another": "n = x * torch.rsqrt((h * h).sum(dim=-1, keepdim=True) + 1e-6)",
    "l2, of a product": "n = h * torch.rsqrt((h * x).abs().sum(dim=-1, keepdim=True) + 1e-6)",
    "layer": "n = F.layer_norm(h, (16,), self.scale.to(h.dtype), self.row.to(h.dtype))",
}
THEN = {
    "nothing": "",
    "written": "n = n * 1\nn.mul_(2)",
    "sum written": "h.mul_(2)",
    "input read": "n = n + x",
    "second read": "n = n + y",
    "product": "n = F.linear(n, self.weight.to(n.dtype))",
    "second norm": "h = h + n\nwide = h.to(torch.float32)\n"
    "n = self.scale * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(h.dtype)",
}
OUTPUTS = {"norm": "n", "norm and sum": "n, h", "sum and inputs": "n, h, x, y"}

ATTENTION = (
    HEAD
    + """
    def forward(self, x, m):
        b, s, _ = x.shape
        q = F.linear(x, self.q).view(b, s, 4, 8).transpose(1, 2)
        k = F.linear(x, self.k).view(b, s, $heads, 8).transpose(1, 2)
        v = F.linear(x, self.v).view(b, s, $heads, 8).transpose(1, 2)
        $rope
        $repeat
        $attend
        return F.linear(o.transpose(1, 2).reshape(b, s, 32), self.o), $also
"""
    + TAIL
    + """
def inputs():
    return numbers((2, 5, 32), 0).to($dtype), $mask.to($dtype)
"""
)
MASKS = {
    "causal": "torch.full((2, 5, 5), -1e4).triu(1)",
    "bias": "numbers((2, 5, 5), 5)",
    "window": "torch.full((2, 5, 5), -1e4).triu(1) + torch.full((2, 5, 5), -1e4).tril(-2)",
    "padding": "torch.tensor([0.0, 0, 0, 0, -1e4]).expand(2, 5, 5).clone()",
    "zeros": "torch.zeros(2, 5, 5)",
}
ROPES = {
    "none": "",
    "halves": "cos, sin = self.cos[None], self.sin[None]\n"
    "cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)\n"
    "q = (q * cos) + (torch.cat((-q[..., 4:], q[..., :4]), dim=-1) * sin)\n"
    "k = (k * cos) + (torch.cat((-k[..., 4:], k[..., :4]), dim=-1) * sin)",
    "uneven halves": "cos, sin = self.cos[None], self.sin[None]\n"
    "cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)\n"
    "q = (q * cos) + (torch.cat((-q[..., 2:], q[..., :2]), dim=-1) * sin)\n"
    "k = (k * cos) + (torch.cat((-k[..., 2:], k[..., :2]), dim=-1) * sin)",
    "other halves": "cos, sin = self.cos[None], self.sin[None]\n"
    "cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)\n"
    "q = (q * cos) + (torch.cat((-q[..., :4], q[..., 4:]), dim=-1) * sin)\n"
    "k = (k * cos) + (torch.cat((-k[..., :4], k[..., 4:]), dim=-1) * sin)",
    "before the transpose": "cos, sin = self.cos[None], self.sin[None]\n"
    "q, k = q.transpose(1, 2), k.transpose(1, 2)\ncos, sin = cos.unsqueeze(2), sin.unsqueeze(2)\n"
    "q = (q * cos) + (torch.cat((-q[..., 4:], q[..., :4]), dim=-1) * sin)\n"
    "k = (k * cos) + (torch.cat((-k[..., 4:], k[..., :4]), dim=-1) * sin)\n"
    "q, k = q.transpose(1, 2), k.transpose(1, 2)",
    "halves, of part": "cos, sin = self.cos[None, :, :4], self.sin[None, :, :4]\n"
    "cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)\nq, q_rest = q[..., :4], q[..., 4:]\nk, k_rest = k[..., :4], k[..., 4:]\n"
    "q = torch.cat([(q * cos) + (torch.cat((-q[..., 2:], q[..., :2]), dim=-1) * sin), q_rest], -1)\n"
    "k = torch.cat([(k * cos) + (torch.cat((-k[..., 2:], k[..., :2]), dim=-1) * sin), k_rest], -1)",
    "interleaved": "cos, sin = self.cos[None], self.sin[None]\n"
    "cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)\n"
    "q = q.view(b, 4, s, 4, 2).transpose(4, 3).reshape(b, 4, s, 8)\n"
    "k = k.view(b, $heads, s, 4, 2).transpose(4, 3).reshape(b, $heads, s, 8)\n"
    "q = (q * cos) + (torch.cat((-q[..., 4:], q[..., :4]), dim=-1) * sin)\n"
    "k = (k * cos) + (torch.cat((-k[..., 4:], k[..., :4]), dim=-1) * sin)",
    "interleaved otherwise": "cos, sin = self.cos[None], self.sin[None]\n"
    "cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)\n"
    "q = q.reshape(b, 4, s, 2, 4).transpose(4, 3).reshape(b, 4, s, 8)\n"
    "k = k.reshape(b, $heads, s, 2, 4).transpose(4, 3).reshape(b, $heads, s, 8)\n"
    "q = (q * cos) + (torch.cat((-q[..., 4:], q[..., :4]), dim=-1) * sin)\n"
    "k = (k * cos) + (torch.cat((-k[..., 4:], k[..., :4]), dim=-1) * sin)",
    "complex": "turn = torch.polar(torch.ones_like(self.cos[:, :4].float()), self.cos[:, :4].float())[None]\n"
    "qc = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))\n"
    "kc = torch.view_as_complex(k.float().reshape(*k.shape[:-1], -1, 2))\n"
    "q = torch.view_as_real(qc * turn.unsqueeze(1)).flatten(3).type_as(q)\n"
    "k = torch.view_as_real(kc * turn.unsqueeze(1)).flatten(3).type_as(k)",
    "only queries": "cos, sin = self.cos[None], self.sin[None]\ncos, sin = cos.unsqueeze(1), sin.unsqueeze(1)\n"
    "q = (q * cos) + (torch.cat((-q[..., 4:], q[..., :4]), dim=-1) * sin)",
    "two angles": "cos, sin = self.cos[None], self.sin[None]\ncos, sin = cos.unsqueeze(1), sin.unsqueeze(1)\n"
    "q = (q * cos) + (torch.cat((-q[..., 4:], q[..., :4]), dim=-1) * sin)\n"
    "k = (k * sin) + (torch.cat((-k[..., 4:], k[..., :4]), dim=-1) * cos)",
}
REPEATS = {
    "none": "",
    "expanded": "k = k[:, :, None].expand(b, $heads, 4 // $heads, s, 8).reshape(b, 4, s, 8)\n"
    "v = v[:, :, None].expand(b, $heads, 4 // $heads, s, 8).reshape(b, 4, s, 8)",
    "expanded before the heads": "k = k[:, None].expand(b, 4 // $heads, $heads, s, 8).reshape(b, 4, s, 8)\n"
    "v = v[:, None].expand(b, 4 // $heads, $heads, s, 8).reshape(b, 4, s, 8)",
    "repeat_interleave": "k, v = k.repeat_interleave(4 // $heads, 1), v.repeat_interleave(4 // $heads, 1)",
    "repeat": "k, v = k.repeat(1, 4 // $heads, 1, 1), v.repeat(1, 4 // $heads, 1, 1)",
    "only values": "k = k.repeat(1, 4 // $heads, 1, 1)\nv = v.unsqueeze(2).expand(b, $heads, 4 // $heads, s, 8).reshape(b, 4, s, 8)",
    "longer": "k, v = (t.unsqueeze(2).expand(b, $heads, 2, s, 8).reshape(b, $heads, 2 * s, 8)[:, :, :s] for t in (k, v))\n"
    "k, v = k.repeat_interleave(4 // $heads, 1), v.repeat_interleave(4 // $heads, 1)",
}
ATTENDS = {
    "library's": "o = F.scaled_dot_product_attention(q, k, v)",
    "library's, causal": "o = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    "library's, mask": "o = F.scaled_dot_product_attention(q, k, v, attn_mask=m.unsqueeze(1))",
    "library's, scale": "o = F.scaled_dot_product_attention(q, k, v, scale=0.3)",
    "library's, gqa": "o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)",
    "by hand": "a = torch.matmul(q, k.transpose(2, 3)) * 0.35\n"
    "a = F.softmax(a, dim=-1, dtype=torch.float32).to(q.dtype)\n"
    "a = F.dropout(a, p=0.0, training=False)\no = torch.matmul(a, v)",
    "by hand, mask": "a = torch.matmul(q, k.transpose(2, 3)) * 0.35\na = a + m.unsqueeze(1)\n"
    "a = F.softmax(a, dim=-1, dtype=torch.float32).to(q.dtype)\n"
    "a = F.dropout(a, p=0.0, training=False)\no = torch.matmul(a, v)",
    "by hand, divided": "a = torch.matmul(q, k.transpose(2, 3)) / 2.8\na = a + m.unsqueeze(1)\n"
    "a = F.softmax(a, dim=-1, dtype=torch.float32).to(q.dtype)\n"
    "a = F.dropout(a, p=0.0, training=False)\no = torch.matmul(a, v)",
    "by hand, plain softmax": "a = torch.matmul(q, k.transpose(2, 3)) * 0.35\na = a + m.unsqueeze(1)\n"
    "a = F.softmax(a, dim=-1)\na = F.dropout(a, p=0.0, training=False)\no = torch.matmul(a, v)",
    "by hand, other dim": "a = torch.matmul(q, k.transpose(2, 3)) * 0.35\n"
    "a = F.softmax(a, dim=-2, dtype=torch.float32).to(q.dtype)\n"
    "a = F.dropout(a, p=0.0, training=False)\no = torch.matmul(a, v)",
    "by hand, rounded": "a = torch.matmul(q, k.transpose(2, 3)) * 0.35\n"
    "a = F.softmax(a, dim=-1, dtype=torch.float32).to(torch.float16).to(q.dtype)\n"
    "a = F.dropout(a, p=0.0, training=False)\no = torch.matmul(a, v)",
    "by hand, two scales": "a = torch.matmul(q * 0.5, k.transpose(2, 3)) / 2.8\na = a.to(torch.float32)\n"
    "a = F.softmax(a, dim=-1).to(q.dtype)\na = F.dropout(a, p=0.0, training=False)\no = torch.matmul(a, v)",
    "by hand, capped": "a = torch.matmul(q, k.transpose(2, 3)) * 0.35\na = torch.tanh(a / 2) * 2 + m.unsqueeze(1)\n"
    "a = F.softmax(a, dim=-1, dtype=torch.float32).to(q.dtype)\n"
    "a = F.dropout(a, p=0.0, training=False)\no = torch.matmul(a, v)",
    "by hand, kept": "a = torch.matmul(q, k.transpose(2, 3)) * 0.35\n"
    "a = F.softmax(a, dim=-1, dtype=torch.float32).to(q.dtype)\n"
    "a = F.dropout(a, p=0.0, training=False)\no = torch.matmul(a, v)\no = o * a.sum()",
}
ALSO = {"queries": "q", "keys": "k", "values": "v + 1", "input": "x + 1"}

LAYERS = (
    HEAD
    + """
    def forward(self, x, y):
        $layer
        $then
        return r
"""
    + TAIL
    + """
def inputs():
    return numbers((2, 5, 16), 0).to($dtype), numbers((2, 5, 16), 1).to($dtype)
"""
)
LAYER_FORMS = {
    "gated": "r = F.linear(F.silu(F.linear(x, self.gate)) * F.linear(x, self.up), self.down)",
    "gated, up first": "r = F.linear(F.linear(x, self.up) * F.silu(F.linear(x, self.gate)), self.down)",
    "gated, two inputs": "r = F.linear(F.silu(F.linear(x, self.gate)) * F.linear(y, self.up), self.down)",
    "gated, one weight": "r = F.linear(F.silu(F.linear(x, self.gate)) * F.linear(x, self.gate), self.down)",
    "gated, gelu": "r = F.linear(F.gelu(F.linear(x, self.gate)) * F.linear(x, self.up), self.down)",
    "gated, biases": "r = F.linear(F.silu(F.linear(x, self.gate, self.b)) * F.linear(x, self.up, self.b), self.down, self.c)",
    "gated, one bias": "r = F.linear(F.silu(F.linear(x, self.gate, self.b)) * F.linear(x, self.up), self.down)",
    "gated, tapped": "g = F.linear(x, self.gate)\nr = F.linear(F.silu(g) * F.linear(x, self.up), self.down), g",
    "gated, packed": "g, u = F.linear(x, self.packed).chunk(2, -1)\nr = F.linear(F.silu(g) * u, self.down)",
    "gated, packed otherwise": "u, g = F.linear(x, self.packed).chunk(2, -1)\nr = F.linear(F.silu(g) * u, self.down)",
    "gated, packed by narrow": "p = F.linear(x, self.packed)\n"
    "r = F.linear(F.silu(torch.narrow(p, -1, 0, 24)) * torch.narrow(p, -1, 24, 24), self.down)",
    "gated, overlapping": "p = F.linear(x, self.packed)\n"
    "r = F.linear(F.silu(torch.narrow(p, -1, 0, 24)) * torch.narrow(p, -1, 12, 24), self.down)",
    "gated, narrow of another dim": "p = F.linear(x, self.packed).transpose(-1, -2)\n"
    "r = F.silu(torch.narrow(p, -2, 0, 24)) * torch.narrow(p, -2, 24, 24)",
    "two of one input": "r = F.linear(x, self.gate), F.linear(x, self.up)",
    "one weight twice": "r = F.linear(x, self.gate), torch.tanh(F.linear(x, self.gate))",
    "weight transposed": "r = x @ self.gate.t()",
    "weight computed": "r = F.linear(x, self.gate * 2)",
    "weight cast": "r = F.linear(x, self.gate.to(torch.float32).to(x.dtype))",
    "weight rounded": "r = F.linear(x, self.gate.to(torch.bfloat16).to(x.dtype))",
    "weight sliced": "r = F.linear(x, self.packed[:24])",
    "one row of weight": "r = F.linear(x, self.gate[0])",
    "one position": "r = F.linear(x[0, 0], self.gate)",
    "tied": "tokens = (y.float().abs() * 10).long() % 16\nr = F.linear(F.embedding(tokens[..., 0], self.square), self.square)",
    "routing": "w = F.softmax(F.linear(x.reshape(-1, 16), self.router), dim=-1, dtype=torch.float32)\nw, i = torch.topk(w, 2, dim=-1)\n"
    "w = w / w.sum(dim=-1, keepdim=True)\nr = w.to(x.dtype), i",
    "routing, least": "w = F.softmax(F.linear(x.reshape(-1, 16), self.router), dim=-1, dtype=torch.float32)\n"
    "w, i = torch.topk(w, 2, dim=-1, largest=False)\nw = w / w.sum(dim=-1, keepdim=True)\nr = w.to(x.dtype), i",
    "routing, other dim": "w = F.softmax(F.linear(x.reshape(-1, 16), self.router), dim=-1, dtype=torch.float32)\n"
    "w, i = torch.topk(w, 2, dim=0)\nw = w / w.sum(dim=-1, keepdim=True)\nr = w.to(x.dtype), i",
    "routing, softmax of tokens": "w = F.softmax(F.linear(x.reshape(-1, 16), self.router), dim=0, dtype=torch.float32)\n"
    "w, i = torch.topk(w, 2, dim=-1)\nw = w / w.sum(dim=-1, keepdim=True)\nr = w.to(x.dtype), i",
    "routing, sum of tokens": "w = F.softmax(F.linear(x.reshape(-1, 16), self.router), dim=-1, dtype=torch.float32)\n"
    "w, i = torch.topk(w, 2, dim=-1)\nw = w / w.sum(dim=0, keepdim=True)\nr = w.to(x.dtype), i",
    "routing, three dims": "w = F.softmax(F.linear(x, self.router), dim=-1, dtype=torch.float32)\nw, i = torch.topk(w, 2, dim=-1)\n"
    "w = w / w.sum(dim=-1, keepdim=True)\nr = w.to(x.dtype), i",
    "routing, kept": "w = F.softmax(F.linear(x.reshape(-1, 16), self.router), dim=-1, dtype=torch.float32)\nw, i = torch.topk(w, 2, dim=-1)\n"
    "n = w / w.sum(dim=-1, keepdim=True)\nr = n.to(x.dtype), i, w",
    "experts by mask": "w = F.softmax(F.linear(x, self.router), -1)\nr = torch.zeros_like(x)\n"
    "for e in range(2):\n    h = F.silu(F.linear(x, self.gates[e])) * F.linear(x, self.ups[e])\n"
    "    r = r + F.linear(h, self.downs[e]) * w[..., e : e + 1]",
    "experts at once": "h = torch.bmm(x.reshape(1, -1, 16).expand(2, -1, 16), self.gates.mT)\n"
    "h = F.silu(h) * torch.bmm(x.reshape(1, -1, 16).expand(2, -1, 16), self.ups.mT)\nr = torch.bmm(h, self.downs.mT).sum(0).view(x.shape)",
    "float8 weight": "r = F.linear(x, self.gate.to(torch.float8_e4m3fn).to(x.dtype) * 0.75)",
    "cast to its own": "r = x.to(x.dtype) + y.to(torch.float32).to(y.dtype)",
    "noop slice": "r = x[:, 0:9223372036854775807] * 2, y[:, :, 0:]",
    "transposes": "t = x.transpose(1, 2)\nr = t.contiguous().transpose(1, 2) * 2, x + 1",
    "transposes kept": "t = x.transpose(1, 2).contiguous()\nr = t.transpose(1, 2) * 2, t + 1",
    "transposes of other dims": "r = x.transpose(1, 2).contiguous().transpose(0, 1) * 2, x + 1",
    "step of a convolution": "s = torch.cat((y[:, 1:], x[:, :1]), 1)\nr = F.silu((s * self.scale).sum(1)), s",
    "causal convolution": "p = F.pad(x.transpose(1, 2), (3, 0))\n"
    "r = F.silu(F.conv1d(p, self.taps.unsqueeze(1), self.scale, groups=16)).transpose(1, 2)",
    "softplus gate": "r = -torch.exp(self.scale.float()) * F.softplus(x.float() + self.row.float())",
}
LAYER_THEN = {
    "nothing": "",
    "input written": "x.mul_(2)",
    "both inputs": "r = r, x + y",
    "summed": "r = sum(t.float().sum() for t in (r if isinstance(r, tuple) else (r,)))",
}


def _grammar(
    name: str, text: str, parameters: str, slots: dict[str, dict[str, str]], cause: tuple[str, ...]
) -> Grammar:
    given = {"parameters": {"all": parameters}, "dtype": DTYPES, "dynamic": DYNAMIC}
    return Grammar(name, text, slots | given, ("decompositions", "inductor"), cause, backends=("autodeploy",))


GRAMMARS = [
    _grammar(
        "decoder_norms",
        NORMS,
        "dict(scale=(16,), row=(16,), weight=(16, 16), column=(5, 1), table=(5, 16), one=(1,))",
        {"add": ADDS, "norm": NORM_FORMS, "then": THEN, "outputs": OUTPUTS},
        ("add", "norm", "then"),
    ),
    _grammar(
        "decoder_attention",
        ATTENTION,
        "dict(q=(32, 32), k=(8 * $heads, 32), v=(8 * $heads, 32), o=(32, 32), cos=(5, 8), sin=(5, 8))",
        {
            "heads": names("4", "2"),
            "rope": ROPES,
            "repeat": REPEATS,
            "attend": ATTENDS,
            "mask": MASKS,
            "also": ALSO,
        },
        ("rope", "repeat", "attend", "mask"),
    ),
    _grammar(
        "decoder_layers",
        LAYERS,
        "dict(gate=(24, 16), up=(24, 16), down=(16, 24), packed=(48, 16), b=(24,), c=(16,), square=(16, 16), router=(4, 16),"
        " gates=(2, 24, 16), ups=(2, 24, 16), downs=(2, 16, 24), scale=(16,), row=(16,), taps=(16, 4))",
        {"layer": LAYER_FORMS, "then": LAYER_THEN},
        ("layer", "then"),
    ),
]
