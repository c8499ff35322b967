"""What generated graphs are made of. A piece is one expression; adding one is adding a line to a table.

Tables say what the values they take must be. *Smooth* pieces move a little when their arguments do. *Steps* do not (a
comparison, a rounding, a cast to integers), so that they take only values that are *exact*: the same bits in every correct
program. *Keeping* pieces are exact where their arguments are; what is rounded on its way is not, since a compiler may round later.
Integers and booleans are always exact.

Left out, since nobody promises an answer: a cast of infinity, NaN or numbers out of range to integers, division by zero,
duplicate indices where the last write would win, which of equal elements is taken.
"""

from __future__ import annotations


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.replace("\n", " ").split(";") if part.strip())


# --------------------------------------------------------------------------------------- of one value

SMOOTH = _listed("""
{0} * 2; torch.sin({0}); torch.cos({0}); torch.tanh({0}); torch.sigmoid({0}); {0} * 1.5; {0} + 0.25; {0} - 3; 1 - {0};
F.gelu({0}); F.gelu({0}, approximate='tanh'); torch.exp({0}.clamp(-3.0, 3.0)); F.silu({0}); torch.sqrt({0}.abs() + 0.1);
{0}.square(); torch.rsqrt({0}.abs() + 0.5); torch.where({0} > 0, {0}, 0.1 * {0});
{0}.to(torch.float64).cos().to({0}.dtype); torch.erf({0}); torch.erfc({0}); torch.log1p({0}.abs()); torch.atan({0});
F.softplus({0}); F.elu({0}); {0} * {0}.shape[-1]; torch.full_like({0}, 0.5) + {0}; F.hardswish({0});
torch.expm1({0}.clamp(max=2.0)); F.logsigmoid({0}); {0} * torch.arange({0}.shape[-1], device={0}.device); {0}.abs().pow(1.5);
1.0 / ({0}.square() + 1.0); torch.ones_like({0}) - {0}; {0}.pow(2); {0}.pow(3); {0}.clamp(-2, 2) ** 4; {0}.abs() ** 0.5;
2.0 ** {0}.clamp(-4, 4); torch.log({0}.abs() + 0.5); torch.log2({0}.abs() + 0.5); torch.log10({0}.abs() + 0.5);
torch.exp2({0}.clamp(-4, 4)); torch.asinh({0}); torch.acosh({0}.abs() + 1.5); torch.atanh({0}.clamp(-0.75, 0.75));
torch.sinh({0}.clamp(-3, 3)); torch.cosh({0}.clamp(-3, 3)); torch.asin({0}.clamp(-0.75, 0.75));
torch.acos({0}.clamp(-0.75, 0.75)); torch.tan({0}.clamp(-1, 1)); torch.logit({0}.sigmoid(), eps=0.1);
torch.sinc({0}.clamp(-5, 5)); torch.erfinv({0}.clamp(-0.75, 0.75)); torch.lgamma({0}.abs() + 1.0);
torch.digamma({0}.abs() + 1.0); torch.special.entr({0}.abs()); torch.special.log_ndtr({0}.clamp(-5, 5));
torch.special.ndtr({0}); torch.special.i0e({0}); torch.i0({0}.clamp(-5, 5)); torch.special.erfcx({0}.clamp(-2, 5));
torch.special.i1({0}.clamp(-5, 5)); torch.special.xlog1py({0}, {0}.abs()); torch.deg2rad({0}); F.hardsigmoid({0});
F.hardtanh({0}); F.mish({0}); F.selu({0}); F.celu({0}, 0.7); F.softsign({0}); F.tanhshrink({0}); F.softshrink({0});
F.leaky_relu({0}, 0.2); F.relu6({0}); torch.float_power({0}.abs() + 0.1, 1.3); {0}.reciprocal().clamp(-2, 2) * 0 + {0};
torch.mul({0}, 2, out=torch.empty_like({0})); torch.sin({0}, out=torch.zeros_like({0})); {0} * {0}.new_ones(());
{0} / 3; 0.1 / ({0}.abs() + 0.5); {0} * 1e-3 + 1e-6; {0}.to(torch.bfloat16).to(torch.float32) * 1.0;
{0}.half().float() + {0}; torch.polygamma(1, {0}.abs() + 1.0); torch.complex({0}.float(), {0}.float().sin()).abs();
torch.view_as_real(torch.polar({0}.float().abs(), {0}.float().clamp(-9, 9)) * 2)[..., 0];
torch.addcdiv({0}, {0}, {0}.abs() + 1.0, value=0.3); F.threshold({0}, 0.0, 0.0);
torch.heaviside({0} * 0 + 1.0, {0}) * {0}
""")
KEEPING = _listed("""
F.relu({0}); torch.abs({0}); -{0}; torch.clamp({0}, -0.5, 0.5); {0}.clone(); torch.nan_to_num({0}); torch.tril({0});
torch.triu({0}, 1); {0}.contiguous(); {0}.clamp(min=0.25); {0}.clamp(max=-0.25); {0}.double();
{0}.clamp({0} * 0 - 0.5, {0} * 0 + 0.5); torch.positive({0}); torch.nan_to_num({0}, nan=2.0, posinf=4.0, neginf=-4.0);
torch.zeros_like({0}).copy_({0}); F.hardtanh({0}, -1.0, 0.5); torch.tril({0}, -1); torch.triu({0}, -2);
torch.empty_like({0}).fill_(0.5).copy_({0}); {0}.detach(); {0} * -1
""")
STEPS = _listed("""
torch.floor({0}); torch.ceil({0}); torch.round({0}); torch.trunc({0}); torch.frac({0}.clamp(-99, 99)); torch.sign({0});
torch.sgn({0}); torch.signbit({0}); torch.isnan({0}); torch.isinf({0}); torch.isfinite({0}); torch.isneginf({0});
{0} > 0; {0} <= 0.25; {0} == {0}; {0} != 0; torch.nan_to_num({0}).clamp(-100, 100).to(torch.int32);
torch.nan_to_num({0}).clamp(-100, 100).to(torch.int8); torch.nan_to_num({0}).clamp(0, 100).to(torch.uint8);
torch.nan_to_num({0}).clamp(-100, 100).long(); {0}.bool(); {0}.logical_not();
torch.round({0}.clamp(-99, 99), decimals=1); {0} % 2; {0} % -2; torch.fmod({0}, 2); torch.fmod({0}, -1.5);
torch.remainder({0}, 1.5); {0} // 0.5; torch.div({0}, 0.5, rounding_mode='trunc');
torch.div({0}, -2, rounding_mode='floor'); F.hardshrink({0}); F.threshold({0}, 0.1, 2.0);
torch.bucketize({0}, torch.tensor([-1.0, 0.0, 0.5], dtype={0}.dtype, device={0}.device)); torch.nextafter({0}, torch.ones_like({0}));
torch.frexp({0})[0]; torch.frexp({0})[1]; torch.ldexp({0}, torch.tensor(2)); torch.where(torch.isnan({0}), 0.0, {0});
{0}.half(); {0}.bfloat16(); {0}.float();
torch.searchsorted(torch.tensor([-1.0, 0.0, 0.5], dtype={0}.dtype, device={0}.device), {0}.contiguous(), right=True);
{0}.view(torch.int32); {0}.view(torch.int16); torch.heaviside({0}, torch.full_like({0}, 0.5)); torch.count_nonzero({0});
torch.round({0} * 8) / 8; 7 % ({0}.abs() + 1)
""")
INTEGER = _listed("""
torch.any({0}); torch.all({0}); ({0} + {0}).long(); ({0} * 3).float();
{0} + 1; {0} - 3; 2 - {0}; {0} * 3; {0} * -7; -{0}; torch.abs({0}); {0} // 3; {0} // -3; {0} % 3; {0} % -3;
torch.fmod({0}, 3); torch.fmod({0}, -3); torch.div({0}, 3, rounding_mode='trunc');
torch.div({0}, -3, rounding_mode='floor'); {0} / 4; ~{0}; {0} & 5; {0} | 9; {0} ^ 3; {0} << 1; {0} >> 1; {0} >> 3;
{0} ** 2; {0} ** 3; torch.sign({0}); {0}.clamp(-2, 3); {0}.clamp(min=0); {0}.to(torch.int8); {0}.to(torch.uint8);
{0}.to(torch.int16); {0}.to(torch.int32); {0}.long(); {0}.bool(); {0}.float(); {0}.half(); {0}.double(); {0} > 0;
{0} == 1; {0} * 0.5; {0} + 0.5; {0}.square(); torch.where({0} > 2, {0}, 1); torch.bitwise_left_shift({0}, 2);
torch.gcd({0}, torch.tensor(6, dtype={0}.dtype, device={0}.device)); {0}.logical_not(); {0} * True; {0}.clone();
torch.full_like({0}, 3) - {0}; torch.zeros_like({0}) - {0}; {0} + torch.arange({0}.shape[-1], device={0}.device); 7 // ({0} * 0 + 2);
100 - {0} * {0}; torch.sqrt({0}.abs().float()); {0} + torch.ones((), dtype=torch.int8); {0} * torch.tensor(2.5);
torch.isfinite({0}); torch.tril({0}); {0}.to(torch.bfloat16); torch.bitwise_right_shift({0}, {0} * 0 + 70);
torch.bitwise_left_shift({0}, {0} * 0 + 70); torch.floor({0}); torch.round({0}); torch.sgn({0});
torch.exp({0}.clamp(-3, 3)); torch.sigmoid({0}.clamp(-9, 9)); {0}.pow(0); torch.signbit({0});
torch.rsub({0}, 5, alpha=2); torch.bitwise_not({0}); torch.true_divide({0}, 7); torch.reciprocal({0}.abs().clamp(1, 9));
torch.ceil({0} / 2); torch.lcm({0} % 5, {0} * 0 + 4); torch.nan_to_num({0})
""")
BOOLEAN = _listed("""
~{0}; {0} & True; {0} | False; {0} ^ True; {0}.logical_not(); {0}.int(); {0}.float(); {0}.to(torch.uint8); {0} + {0};
{0} * 3; {0} + 1; {0} / 2; {0}.to(torch.int8) - 1; {0} * 0.5; torch.where({0}, 2, -1);
torch.where({0}, 0.5, float('nan')); {0}.clone(); {0} == True; {0}.long().cumsum(-1); {0}.to(torch.bfloat16);
torch.abs({0}); {0}.half() * 2; {0} + torch.tensor(2, dtype=torch.uint8); torch.bitwise_not({0}); {0}.double();
{0} * True; torch.full_like({0}, True) ^ {0}; {0} > False; torch.zeros_like({0}).logical_or({0}); {0}.sum();
torch.sin({0})
""")

# -------------------------------------------------------------------------------------- of two values

BINARY_SMOOTH = _listed("""
{0}.clamp({1}, {1} + 0.5); {0} + {1}; {0} * {1}; {0} - {1}; {0} / ({1}.abs() + 1.0); torch.lerp({0}, {1}, 0.3); torch.hypot({0}, {1});
torch.atan2({0}, {1}.abs() + 1.0); torch.addcmul({0}, {0}, {1}, value=0.5); torch.where({0} > {1}, {0}, {1});
torch.copysign({0}, {1}.abs() + 1.0); torch.add({0}, {1}, alpha=2); torch.logaddexp({0}, {1});
torch.logaddexp2({0}, {1}); torch.xlogy({0}, {1}.abs() + 0.5); torch.sub({0}, {1}, alpha=0.5);
({0}.abs() + 0.1).clamp(max=3) ** {1}.clamp(-2, 2); torch.true_divide({0}, {1}.abs() + 0.5);
F.prelu({0}, torch.tensor([0.3]).to({0})) + {1}; torch.lerp({0}, {1}, torch.sigmoid({0}));
torch.add({0}, {1}, out=torch.empty(0, dtype={0}.dtype, device={0}.device)); F.smooth_l1_loss({0}, {1}.expand_as({0}), reduction='none');
F.huber_loss({0}, {1}.expand_as({0}), reduction='none'); F.mse_loss({0}, {1}.expand_as({0}));
F.l1_loss({0}, {1}.expand_as({0}), reduction='sum'); torch.addcdiv({0}, {1}, {0}.square() + 1.0, value=-0.5);
torch.rsub({0}, {1}); F.kl_div(F.logsigmoid({0}), {1}.sigmoid().expand_as({0}), reduction='none');
F.binary_cross_entropy_with_logits({0}, {1}.sigmoid().expand_as({0}), reduction='none')
""")
BINARY_KEEPING = _listed("""
torch.maximum({0}, {1}); torch.minimum({0}, {1}); torch.fmax({0}, {1}); torch.fmin({0}, {1});
torch.where(torch.isnan({1}), {1}, {0}); {0}.clamp(min={1}); {0}.clamp(max={1});
torch.zeros_like({0}) + torch.maximum({0}, {1})
""")
BINARY_STEPS = _listed("""
{0} > {1}; {0} <= {1}; {0} == {1}; {0} != {1}; torch.fmod({0}, {1}.abs() + 1); torch.remainder({0}, {1}.abs() + 1);
{0} % (-{1}.abs() - 1); torch.div({0}, {1}.abs() + 1, rounding_mode='floor');
torch.div({0}, {1}.abs() + 1, rounding_mode='trunc'); torch.copysign({0}, {1}); torch.heaviside({0}, {1});
torch.nextafter({0}, {1}.expand_as({0})); torch.logical_and({0}, {1}); torch.logical_xor({0}, {1});
torch.isclose({0}, {1}.expand_as({0}), equal_nan=True); torch.where({0} > {1}, {0}, 0.5);
torch.masked_fill({0}, ({1} > 0).expand_as({0}), -2.0); torch.floor_divide({0}, {1}.abs() + 1);
torch.ldexp({0}, {1}.clamp(-3, 3).round())
""")
BINARY_INTEGER = _listed("""
{0} + {1}; {0} - {1}; {0} * {1}; {0} & {1}; {0} | {1}; {0} ^ {1}; {0} // ({1} % 5 + 1); {0} % ({1} % 5 + 2);
{0} % (-({1} % 5) - 1); torch.div({0}, {1} % 5 + 1, rounding_mode='trunc'); torch.fmod({0}, {1} % 5 + 1);
torch.div({0}, {1} % 5 + 1); torch.maximum({0}, {1}); torch.minimum({0}, {1}); {0} > {1}; {0} == {1}; {0} << ({1} % 5);
{0} >> ({1} % 5); {0} << {1}; {0} >> {1}; torch.where({0} > {1}, {0}, {1}); {0} ** ({1} % 4).abs(); torch.gcd({0}, {1});
torch.clamp({0}, max={1}); torch.logical_and({0}, {1}); {0} / ({1} % 5 + 1); torch.add({0}, {1}, alpha=3);
torch.sub({0}, {1}, alpha=2); torch.where({1} > 0, {0}, 2.5); torch.eq({0}, {1}).sum();
torch.floor_divide({0}, {1} % 3 + 1); torch.addcmul({0}, {0}, {1}, value=2)
""")
BINARY_BOOLEAN = _listed("""
{0} & {1}; {0} | {1}; {0} ^ {1}; {0} == {1}; torch.logical_xor({0}, {1}); {0} + {1}; {0} * {1};
torch.where({0}, {1}, ~{1}); torch.maximum({0}, {1}); {0} > {1}; torch.minimum({0}, {1}); {0} / ({1} + 1);
{0}.logical_and({1})
""")
# The first is a float that need not be exact, the second is of another kind.
MIXED = _listed("""
{0} + {1}; {0} * {1}; {0} - {1}; {1} - {0}; torch.where({1} > 0, {0}, 0.5); torch.where({1} > 0, {0}, -1);
{0} * ({1} == 1); {0}.masked_fill(({1} > 0), 2.0); {0} / ({1} * {1} + 1); torch.where({1}.bool(), {0}, {0} * 2);
{1} / ({0}.abs() + 1); torch.add({1}, {0}, alpha=2); torch.pow({0}.abs() + 0.5, {1}.clamp(0, 3))
""")

# ------------------------------------------------------------------------------------ along one dim, {d}

SAME_SHAPE = _listed("""
torch.softmax({0}, dim={d}); torch.log_softmax({0}, dim={d}); torch.cumsum({0}, dim={d});
{0} - {0}.mean(dim={d}, keepdim=True); F.layer_norm({0}, {0}.shape[-1:]); F.normalize({0}, dim={d});
{0} / ({0}.abs().amax(dim={d}, keepdim=True) + 1.0); torch.cumprod(torch.tanh({0}), dim={d});
torch.logcumsumexp({0}, dim={d}); F.softmin({0}, dim={d}); torch.softmax({0}, dim={d}, dtype=torch.float32);
({0} - {0}.mean(dim={d}, keepdim=True)) / ({0}.var(dim={d}, keepdim=True, unbiased=False) + 0.1).sqrt();
F.normalize({0}, p=1.0, dim={d}); F.rms_norm({0}, {0}.shape[-1:]); torch.cumsum({0}, dim={d}, dtype=torch.float64);
F.softmax({0}.float(), dim={d}).to({0}.dtype)
""")
SAME_KEEPING = _listed("""
torch.flip({0}, ({d},)); torch.roll({0}, 1, {d}); torch.cat(({0}[1:], {0}[:1])); torch.roll({0}, -2, {d});
torch.cummax({0}, dim={d}).values; torch.cummin({0}, dim={d}).values; torch.sort({0}, dim={d}).values;
torch.sort({0}, dim={d}, descending=True).values; torch.flip({0}, (0, -1) if {0}.dim() > 1 else (0,));
{0}.index_select({d}, torch.arange({0}.shape[{d}] - 1, -1, -1, device={0}.device));
torch.take_along_dim({0}, torch.zeros_like({0}, dtype=torch.int64), {d});
torch.gather({0}, {d}, torch.full_like({0}, -1, dtype=torch.int64) % max({0}.shape[{d}], 1));
torch.select_scatter({0}, {0}.select({d}, -1), {d}, 0); torch.slice_scatter({0}, {0}.narrow({d}, 0, 1), {d}, -1);
{0}.scatter({d}, torch.zeros_like({0}.narrow({d}, 0, 1), dtype=torch.int64), {0}.narrow({d}, 0, 1));
torch.rot90({0}, 2, (0, 1)); {0}.contiguous().as_strided({0}.shape, {0}.contiguous().stride())
""")
REDUCE = _listed("""
{0}.sum(dim={d}); {0}.mean(dim={d}); torch.logsumexp({0}, dim={d}); {0}.var(dim={d}, unbiased=False);
torch.linalg.vector_norm({0}, dim={d}); torch.tanh({0}).prod(dim={d}); {0}.diff(dim={d}).sum(dim={d});
{0}.std(dim={d}, unbiased=False); {0}.var(dim={d}, correction=0); torch.nansum({0}, dim={d});
torch.var_mean({0}, dim={d}, correction=0)[1]; torch.nanmean({0}, dim={d}); {0}.norm(p=1, dim={d});
torch.linalg.vector_norm({0}, ord=3, dim={d}); {0}.sum(dim={d}, dtype=torch.float64); {0}.abs().mean(dim={d}).log1p();
torch.trapezoid({0}, dim={d}); {0}.sum(dim={d}) / {0}.shape[{d}]; torch.dist({0}, {0} * 0.5) + {0}.sum(dim={d});
{0}.square().sum(dim={d}).sqrt(); torch.std_mean({0}, dim={d})[1]; {0}.var(dim={d});
torch.sum({0}, dim={d}, out=torch.empty(0, dtype={0}.dtype, device={0}.device)); {0}.exp().clamp(max=50).sum(dim={d});
torch.linalg.vector_norm({0}, ord=0.5, dim={d})
""")
REDUCE_KEEPING = _listed("""
{0}.amax(dim={d}); {0}.amin(dim={d}); {0}.select({d}, 0); {0}.select({d}, -1); torch.aminmax({0}, dim={d})[0];
{0}.max(dim={d}).values; torch.linalg.vector_norm({0}, ord=float('inf'), dim={d});
torch.linalg.vector_norm({0}, ord=-float('inf'), dim={d}); {0}.median(dim={d}).values;
torch.sort({0}, dim={d}).values.select({d}, 0); {0}.kthvalue(1, dim={d}).values
""")
REDUCE_STEPS = _listed("""
torch.count_nonzero({0}, dim={d}); {0}.any(dim={d}); {0}.all(dim={d}); torch.isnan({0}).sum(dim={d});
 torch.linalg.vector_norm({0}, ord=0, dim={d}); ({0} > 0).cumsum({d}).select({d}, -1)
""")
REDUCE_INTEGER = _listed("""
{0}.sum(dim={d}); {0}.prod(dim={d}); {0}.amax(dim={d}); {0}.amin(dim={d}); {0}.float().mean(dim={d}); {0}.any(dim={d});
{0}.all(dim={d}); {0}.sum(dim={d}, dtype=torch.int32); torch.count_nonzero({0}, dim={d});
{0}.cumsum({d}).select({d}, -1); {0}.max(dim={d}).values; {0}.cumprod({d}).select({d}, -1);
{0}.sum(dim={d}, dtype=torch.float32); {0}.sum(dim={d}, dtype=torch.int8);
torch.cummax({0}, dim={d}).values.select({d}, -1); {0}.diff(dim={d}).sum({d}); {0}.select({d}, 0)
""")
WRITES = _listed("""
{0}.add_({1}); {0}.mul_({1}); {0}.copy_({1}); {0}[1:].mul_(2); {0}[..., ::2].add_(1); {0}.clamp_(min=0);
{0}.transpose(0, -1).sub_(2); {0}.fill_(1); {0}[..., 0] = 2; {0}[..., -1] += 1; {0}.zero_().add_({1});
{0}.sub_({1}, alpha=2); {0}.diagonal(dim1=0, dim2=-1).fill_(3); {0}.view(-1)[1:].neg_(); {0}.unsqueeze(0).add_(1);
{0}[1:].copy_({0}[:-1].clone()); {0}[:1].copy_({0}[-1:]); {0}.masked_fill_({0} != {0}, 1);
{0}.select(-1, 0).copy_({0}.select(-1, -1)); torch.add({0}, {1}, out={0}); {0}[0].mul_({0}.dim());
{0}.index_fill_(0, torch.zeros(1, dtype=torch.int64, device={0}.device), 2); {0}.chunk(2)[0].add_(1); {0}.narrow(0, 0, 1).zero_();
{0}.flatten().add_(1); {0}.square_(); {0}.abs_(); {0}.T.mul_(2); {0}[..., :-1].copy_({0}[..., 1:].clone());
{0}.index_put_((torch.zeros(3, dtype=torch.int64, device={0}.device),), {0}[0] * 2, accumulate=True);
{0}.scatter_(0, torch.zeros_like({0}[:1], dtype=torch.int64), 3); {0}.as_strided((1,), (1,)).add_(2);
{0}.index_add_(0, torch.zeros(2, dtype=torch.int64, device={0}.device), {0}[:2].clone())
""")
WRITES_SMOOTH = _listed("""
{0}.mul_(0.5); {0}.tanh_(); {0}.add_({1}, alpha=0.5); {0}.lerp_({1}.expand_as({0}).clone(), 0.25);
{0}.addcmul_({1}, {1}, value=0.5); {0}.sigmoid_(); {0}.sub_(0.5); {0}.div_(3); torch.sin({1}.expand_as({0}), out={0});
{0}[..., ::2].mul_({0}[..., ::2].sin()); {0}.exp_().clamp_(max=20)
""")

# ------------------------------------------------------------ of images and sequences: rank, code, size of the last dim(s)

WINDOWS: tuple[tuple[int, str, str], ...] = (
    (2, "F.pad({0}, (1, 2))", "({n})+3"),
    (2, "F.pad({0}, (2, -1), value=0.5)", "({n})+1"),
    (2, "F.pad({0}, (-1, -1))", "({n})-2"),
    (3, "F.pad({0}, (1, 2), mode='reflect')", "({n})+3"),
    (3, "F.pad({0}, (2, 1), mode='replicate')", "({n})+3"),
    (3, "F.pad({0}, (1, 1), mode='circular')", "({n})+2"),
    (3, "F.max_pool1d({0}, 3, stride=1, padding=1)", "{n}"),
    (3, "F.max_pool1d({0}, 3, stride=2, padding=1)", "(({n})+1)/2"),
    (3, "F.max_pool1d({0}, 2, stride=1, dilation=2)", "({n})-2"),
    (3, "F.avg_pool1d({0}, 3, stride=1, padding=1)", "{n}"),
    (3, "F.avg_pool1d({0}, 3, stride=1, padding=1, count_include_pad=False)", "{n}"),
    (3, "F.lp_pool1d({0}.abs() + 0.1, 2, 3, stride=1)", "({n})-2"),
    (3, "F.adaptive_avg_pool1d({0}, 3)", "3"),
    (3, "F.adaptive_max_pool1d({0}, 2)", "2"),
    (3, "F.interpolate({0}, scale_factor=2, mode='nearest')", "2*({n})"),
    (3, "F.interpolate({0}, scale_factor=2, mode='linear')", "2*({n})"),
    (3, "F.interpolate({0}, scale_factor=2, mode='nearest-exact')", "2*({n})"),
    (3, "F.max_pool2d({0}, 3, stride=1, padding=1)", "{n}"),
    (3, "F.max_pool2d({0}, 3, stride=1, padding=1, dilation=1, ceil_mode=True)", "{n}"),
    (3, "F.avg_pool2d({0}, 3, stride=1, padding=1, divisor_override=2)", "{n}"),
    (3, "F.avg_pool2d({0}, 3, stride=1, padding=1, count_include_pad=False, ceil_mode=True)", "{n}"),
    (3, "F.local_response_norm({0}, 2)", "{n}"),
    (3, "F.instance_norm({0})", "{n}"),
    (2, "{0}.unfold(-1, 2, 1).sum(-1)", "({n})-1"),
    (2, "{0}.unfold(-1, 3, 2).amax(-1)", "(({n})-1)/2"),
    (2, "{0}.repeat_interleave(2, dim=-1)", "2*({n})"),
    (2, "torch.cat(({0}, {0}.flip(-1)), -1)", "2*({n})"),
    (2, "{0}.tile(2)", "2*({n})"),
    (2, "torch.diff({0}, dim=-1)", "({n})-1"),
    (2, "torch.diff({0}, n=2, dim=-1)", "({n})-2"),
    (2, "{0}[..., 1:-1]", "({n})-2"),
    (2, "{0}[..., -2:]", "2"),
    (2, "torch.cumulative_trapezoid({0}, dim=-1)", "({n})-1"),
    (2, "torch.topk({0}, 2, dim=-1).values", "2"),
    (2, "torch.tensor_split({0}, 2, dim=-1)[0]", "(({n})+1)/2"),
    (2, "F.one_hot((torch.nan_to_num({0}) > 0).long().sum(-1) % 3, 3)", "3"),
)
STEPPED_WINDOWS = ("one_hot",)  # take exact values only

# ---------------------------------------------------------------------------------------------- views, by name

VIEWS = {
    "unsqueeze": "{0}.unsqueeze({d})",
    "narrow": "{0}.narrow({d}, 1, {0}.shape[{d}] - 1)",
    "chunk": "{0}.chunk(2, dim={d})[0]",
    "movedim": "{0}.movedim({d}, 0)",
    "reshape": "{0}.reshape(-1)",
    "unfold": "{0}.unfold({d}, 2, 1)",
    "diag_embed": "torch.diag_embed({0}, dim1={d}, dim2=-1)",
    "step": "{0}[..., ::2]",
    "transpose": "{0}.transpose(-1, -2)",
    "flatten": "{0}.flatten(0, 1)",
    "squeeze": "{0}.squeeze({d})",
}
EXPANDS = {  # by rank and dim
    (rank, dim): f"{{0}}.expand({', '.join('3' if i == dim else '-1' for i in range(rank))})"
    for rank in range(1, 13)
    for dim in range(rank)
}
JOINED = {
    "stack": "torch.stack(({0}, {1}), dim={d})",
    "cat": "torch.cat(({0}, {1}), dim={d})",
    "matmul": "{0} @ {1}",
    "gram": "{0} @ {0}.transpose(-1, -2)",
}
COMPLEX = ("{0}.abs()", "{0} * {0}", "{0}.conj()", "torch.view_as_real({0})[..., 0]")

# -------------------------------------------------------------------------- with the indices of the input `at`

INDEXED = (
    "{0}.index_fill({d}, at, 1)",
    "torch.zeros_like({0}).index_add({d}, at, {0}.index_select({d}, at))",
    "{0}.index_reduce({d}, at, {0}.index_select({d}, at), 'amax')",
    "{0}.index_reduce({d}, at, {0}.index_select({d}, at), 'mean', include_self=False)",
)
INDEX_PUT = "torch.index_put({0}, (at,), {0}[at] * 2, accumulate=True)"
SELECTS = {
    "index_select": "torch.index_select({0}, {d}, at)",
    "index": "{0}[at]",
    "from_the_end": "{0}[-1 - at]",
    "pairs": "{0}[at.unsqueeze(-1), at]",
}
SCATTERS = (
    "{0}.scatter_reduce(0, at, {0}[at], 'amin')",
    "{0}.scatter_reduce(0, at, {0}[at], 'sum', include_self=False)",
    "{0}.scatter_add(0, at, {0}[at])",
    "{0}.scatter_reduce(0, at, {0}[at].clamp(-1, 1), 'prod')",
)

# ------------------------------------------------------------------------------------------ all that there is

REDUCTIONS = (*REDUCE, *REDUCE_KEEPING, *REDUCE_STEPS, *REDUCE_INTEGER)


def keeping_dim(reduction: str) -> str:
    """The reduction whose result keeps its dim, with size 1."""
    return f"({reduction}).unsqueeze({{d}})"


WRITTEN = frozenset({*WRITES, *WRITES_SMOOTH})
KNOWN = WRITTEN | {
    *SMOOTH,
    *KEEPING,
    *STEPS,
    *INTEGER,
    *BOOLEAN,
    *COMPLEX,
    *BINARY_SMOOTH,
    *BINARY_KEEPING,
    *BINARY_STEPS,
    *BINARY_INTEGER,
    *BINARY_BOOLEAN,
    *MIXED,
    *SAME_SHAPE,
    *SAME_KEEPING,
    *REDUCTIONS,
    *(keeping_dim(op) for op in REDUCTIONS if "select" not in op),
    *(op for _, op, _ in WINDOWS),
    *VIEWS.values(),
    *EXPANDS.values(),
    *JOINED.values(),
    *INDEXED,
    INDEX_PUT,
    *SELECTS.values(),
    *SCATTERS,
}
