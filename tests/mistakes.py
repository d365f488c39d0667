"""What users get wrong in a norm of their own: a file each, and what the run has to say of it."""

from __future__ import annotations

from normbench.records import Status

_RMS = "def rms(x, weight, eps):\n"
_CLASS = "class RMS(nn.Module):\n    def __init__(self, dim, eps=1e-6):\n        super().__init__()\n"
_NN = "import torch\nfrom torch import nn\n"
_NAMED = f"{_NN}{_CLASS.replace('RMS(', 'rms(')}"
_GAIN = "        self.weight = nn.Parameter(torch.ones(dim))\n"
_RIGHT = "x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight"

FAILED: dict[str, tuple[str, str]] = {
    # what Python says when the file is imported
    "syntax": ("def rms(x, weight, eps)\n    return x\n", "SyntaxError: expected ':'"),
    "indentation": (f"{_RMS}return x\n", "IndentationError: expected an indented block"),
    "tabs": (f"{_RMS}\tx = x\n        return x\n", "TabError: inconsistent use of tabs"),
    "no_package": (f"import flash_norm_kernels\n{_RMS}    return x\n", "No module named 'flash_norm_kernels'"),
    "no_neighbour": (f"from kernels.fast import f\n{_RMS}    return x\n", "No module named 'kernels'"),
    "above": (f"from ..kernels import f\n{_RMS}    return x\n", "attempted relative import beyond top-level package"),
    "renamed": (
        f"from torch.nn import RMSNrom\n{_RMS}    return x\n",
        "cannot import name 'RMSNrom' from 'torch.nn'",
    ),
    "no_name": (f"@torch.no_grad()\n{_RMS}    return x\n", "NameError: name 'torch' is not defined"),
    "no_gpu": (f"import torch\nW = torch.ones(3, device='mps')\n{_RMS}    return x\n", "MPS"),
    "assertion": (f"assert False, 'build the extension first'\n{_RMS}    return x\n", "build the extension first"),
    "script": (
        f"import argparse\nargparse.ArgumentParser().parse_args(['--x'])\n{_RMS}    return x\n",
        "SystemExit(2)",
    ),
    "quits": (f"import sys\nsys.exit()\n{_RMS}    return x\n", "ended the program while it was imported"),
    "skips": (f"import pytest\npytest.importorskip('no_such_kernels')\n{_RMS}    return x\n", "no_such_kernels"),
    "recursion": (f"def f(): return f()\nf()\n{_RMS}    return x\n", "RecursionError"),
    "itself": ("import itself_rms\nfrom itself_rms import rms\n", "cannot import name 'rms' from"),
    "double": (
        f"import torch\ntorch.set_default_dtype(torch.float64)\n{_RMS}    return x\n",
        "default dtype float32 → float64",
    ),
    "coding": ("# coding: klingon\nrms = 1\n", "SyntaxError: unknown encoding: klingon"),
    # what it is
    "gone": ("def f(): pass\nglobals()['g'] = 1\n", "AttributeError: gone_rms has no rms"),
    "number": ("rms = 3\n", "it is a int, which can't be called: bring a torch.nn.Module class"),
    "nothing": ("rms = None\n", "it is a NoneType, which can't be called"),
    "ready": (
        "import torch\nrms = torch.nn.RMSNorm(64)\n",
        "it is a RMSNorm already made, of one width: bring its class",
    ),
    "bare": ("import torch\nrms = torch.nn.Identity\n", "its module has no parameters; rmsnorm has weight"),
    "linear": ("import torch\nrms = torch.nn.Linear\n", "nothing is known of its parameter 'out_features'"),
    "object": (
        "class rms:\n    def __init__(self, dim): pass\n",
        "it makes a rms, not a torch.nn.Module",
    ),
    "method": (
        "class A:\n    def rms(self, x, weight, eps): return x\nrms = A.rms\n",
        "it is a method, which needs its object",
    ),
    "bool_factory": ("def rms(dim): return True\n", "it makes a bool, not a torch.nn.Module"),
    # what it takes
    "no_weight": ("def rms(x, eps): return x\n", "it has no parameter called weight, and rmsnorm has one"),
    "no_x": ("def rms(): return 1\n", "it has no parameter for x"),
    "axis": ("def rms(x, axis, weight, eps): return x\n", "nothing is known of its parameter 'axis'"),
    "config": (
        "from torch import nn\nclass rms(nn.Module):\n    def __init__(self, dim, config): pass\n",
        "'config'",
    ),
    "config_alone": (
        f"{_NN}class rms(nn.Module):\n    def __init__(self, config): self.dim = config.dim\n",
        "'int' object has no attribute 'dim'",
    ),
    "no_super": (
        f"{_NN}class rms(nn.Module):\n    def __init__(self, dim):\n{_GAIN}",
        "cannot assign parameters before Module.__init__() call",
    ),
    "no_forward": (
        f"{_NAMED}{_GAIN}",
        'missing the required "forward" function',
    ),
    "scalar": (
        f"{_NAMED}        self.g = nn.Parameter(torch.ones(1))\n",
        "its parameter g has the shape (1,), not that of the width",
    ),
    "two_gains": (
        f"{_NAMED}{_GAIN}        self.scale = nn.Parameter(torch.ones(dim))\n",
        "has the parameters weight, scale; rmsnorm has weight",
    ),
    "tensor_gain": (
        f"{_NAMED}        self.weight = torch.ones(dim)\n",
        "its module has no parameters; rmsnorm has weight",
    ),
    "triton": (
        "class Kernel:\n    def __call__(self, *args): raise RuntimeError('outside of a kernel')\nrms = Kernel()\n",
        "RuntimeError: outside of a kernel",
    ),
    # what it does
    "none": (f"{_RMS}    pass\n", "TypeError: it returned a NoneType, not a tensor"),
    "generator": (f"{_RMS}    yield x\n", "TypeError: it returned a generator, not a tensor"),
    "raises": (f"{_RMS}    raise NotImplementedError('bf16 only')\n", "NotImplementedError: bf16 only"),
    "shapes": (f"{_RMS}    return x @ weight[:3]\n", "RuntimeError: size mismatch"),
    "exits": (f"{_RMS}    raise SystemExit(0)\n", "SystemExit: 0"),
    "numpy": (f"{_RMS}    return x.numpy()\n", "Can't call numpy() on Tensor that requires grad"),
}
"""By the file's name: its text, and a part of the reason."""

INCORRECT: dict[str, tuple[str, str]] = {
    "tuple": (f"{_RMS}    return x, x\n", "returned 2 tensors, not y"),
    "layer": ("import torch\nrms = torch.nn.LayerNorm\n", "y[0, 0] is"),
    "identity": (f"{_RMS}    return x + 0 * weight\n", "y"),
    "shape": (f"import torch\n{_RMS}    return ({_RIGHT})[:2]\n", "shape"),
    "sum": (
        f"import torch\n{_RMS}    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps) * weight\n",
        "y",
    ),
    "columns": (
        f"import torch\n{_RMS}    return x * torch.rsqrt(x.square().mean(0, keepdim=True) + eps) * weight\n",
        "y",
    ),
    "no_grad": (f"import torch\n@torch.no_grad()\n{_RMS}    return {_RIGHT}\n", "does not require grad"),
    "detached": (
        f"import torch\n{_RMS}    x = x.detach()\n    return {_RIGHT.replace(' * weight', '')}\n",
        "does not require grad",
    ),
    "in_place": (
        f"import torch\n{_RMS}    with torch.no_grad():\n        x.mul_(2)\n    return x * weight\n",
        "wrote into x",
    ),
    "threads": (
        f"import torch\n{_RMS}    torch.set_num_threads(torch.get_num_threads() + 1)\n    return {_RIGHT}\n",
        "changed torch's settings: threads",
    ),
}
"""The same for results that are wrong."""

REFUSED: dict[str, tuple[str, str]] = {
    "empty": ("", "has no 'rms'"),
    "comment": ("# to do\n", "has no 'rms'"),
    "typo": ("def rmsnorm(x): pass\n", "did you mean rmsnorm?"),
    "case": ("def RMS(x): pass\n", "it has: RMS"),
    "inside": ("class A:\n    def rms(self): pass\n", "it has: A"),
    "local": ("def make():\n    def rms(x): pass\n", "it has: make"),
}
"""The same for files that are refused before anything runs."""

STATUSES = {**dict.fromkeys(FAILED, Status.FAILED), **dict.fromkeys(INCORRECT, Status.INCORRECT)}
