"""Fourier transforms of what was padded, convolved or is stored transposed: the compiled call fails, since strides are not those that it
was told, or gives other strides than eager. See pytorch#179807, #166514, #181625, #106623, #135087."""

import torch
from torch.nn import functional as F

signal, turned = torch.randn(2, 2), torch.randn(8, 6, 4).transpose(0, 2)
image = torch.randn(2, 4, 3, 3).to(memory_format=torch.channels_last)
window = torch.hann_window(10)
CALLS = {
    "stft": lambda: F.pad(signal, (0, 10)).stft(16, 5, 10, window, pad_mode="constant", return_complex=True),
    "rfft": lambda: torch.fft.rfft(turned),
    "ihfft": lambda: torch.fft.ihfft(turned),
    "fft2": lambda: torch.fft.fft2(turned),
    "rfftn": lambda: torch.fft.rfftn(turned),
    "rfft of channels": lambda: torch.fft.rfft(image, dim=1),
}

found = []
for name, call in CALLS.items():
    torch._dynamo.reset()
    try:
        if (got := torch.compile(call)().stride()) != (want := call().stride()):
            found.append(f"{name} has strides {got}, eager {want}")
    except AssertionError as error:
        found.append(f"{name}: {str(error).splitlines()[0]}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
