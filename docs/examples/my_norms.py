"""Norms of one's own, to be measured: a function, and a module as models have it."""

import torch


def vector_rmsnorm(x, weight, eps):
    """RMSNorm by the length of each row, which is reduced in one op."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
    scale = (length.square() / x.shape[-1] + eps).rsqrt()
    return (x * scale).to(x.dtype) * weight


class ModelLayerNorm(torch.nn.Module):
    """LayerNorm as a model's own code has it."""

    def __init__(self, hidden_size, eps=1e-5):
        super().__init__()
        self.gamma = torch.nn.Parameter(torch.ones(hidden_size))
        self.beta = torch.nn.Parameter(torch.zeros(hidden_size))
        self.eps = eps

    def forward(self, x):
        """Normalize each row."""
        h = x.float()
        variance, mean = torch.var_mean(h, -1, keepdim=True, correction=0)
        return ((h - mean) * (variance + self.eps).rsqrt()).to(x.dtype) * self.gamma + self.beta
