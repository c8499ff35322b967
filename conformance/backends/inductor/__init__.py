"""TorchInductor: all seven stages from one plain `torch.compile`."""
