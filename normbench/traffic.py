"""Bytes by formula: the least that a pass must move, and the memory that measuring it takes."""

from __future__ import annotations

from normbench.records import Cell, Mode, ModelShape, Op, StepCell

_FLOAT32 = 4
_FLOAT64 = 8
_COPIES = 5
"""Of a model's parameters: as they begin, as they are, their gradients, and two of AdamW's."""
_KEPT_A_LAYER = 24
"""Tensors of the stream's size that a layer keeps for its backward: of attention, the MLP, norms as chains."""
_OF_LOGITS = 4
"""The logits, their softmax and gradients, in float32."""


def parameter_bytes(op: Op, cell: Cell) -> int:
    """Bytes of the gain, and of the bias where there is one."""
    return (op.has_gain + op.has_bias) * cell.width * cell.parameter_dtype.itemsize


def floor_bytes(op: Op, cell: Cell) -> int:
    """The least bytes any implementation of ``op`` must move in the cell's mode, each tensor once.

    Forward and inference: x, y and the parameters. Backward: x, dy, dx, the parameters and their
    gradients. Forward-backward: the sum. Saved statistics are not in it: they can be recomputed.

    With a residual add: forward x, the residual, y and the new residual h; backward h, dy, the gradient dh that
    arrives for h, and one gradient that is both x's and the residual's.
    """
    activation = cell.elements * cell.dtype.itemsize
    forward = (4 if op.adds else 2) * activation + parameter_bytes(op, cell)
    backward = (4 if op.adds else 3) * activation + 2 * parameter_bytes(op, cell)
    return {
        Mode.FORWARD: forward,
        Mode.INFERENCE: forward,
        Mode.BACKWARD: backward,
        Mode.FORWARD_BACKWARD: forward + backward,
    }[cell.mode]


def placement_bytes(cell: Cell, implementations: int, *, shared: bool) -> int:
    """Memory of one placement: x and dy for each implementation, or once where they are shared.

    With a residual add twice that: the residual, and the gradient that arrives for the new one.
    """
    tensors = (2 if cell.mode.differentiates else 1) * (2 if cell.operation.adds else 1)
    copies = 1 if shared else implementations
    return copies * tensors * cell.elements * cell.dtype.itemsize


def working_bytes(cell: Cell) -> int:
    """Memory that one call of the hungriest built-in takes on top of its inputs, an upper estimate.

    An eager LayerNorm chain holds up to four float32 tensors of x's shape forward (x, centred, its
    square or the normalised, the result), and its backward up to four more beside the saved ones. A residual add
    keeps the sum, and adds two gradients of it up.
    """
    live = 8 if cell.mode.differentiates or cell.mode is Mode.FORWARD else 4
    live += 2 if cell.operation.adds else 0
    return live * cell.elements * _FLOAT32


def touched_bytes(cell: Cell) -> int:
    """What one call goes through: x and y; with gradients x, dy and dx.

    With a residual add x, the residual, y and h; with gradients h, dy, dh and the gradient of x and of the residual.
    """
    forward, backward, both = (4, 4, 7) if cell.operation.adds else (2, 3, 4)
    tensors = {
        Mode.FORWARD: forward,
        Mode.INFERENCE: forward,
        Mode.BACKWARD: backward,
        Mode.FORWARD_BACKWARD: both,
    }[cell.mode]
    return tensors * cell.elements * cell.dtype.itemsize


def cell_bytes(cell: Cell, implementations: int, *, shared: bool = False) -> int:
    """Peak memory of measuring a cell: the values, two placements (the new before the old is freed), a call."""
    values = (4 if cell.operation.adds else 2) * cell.elements * cell.dtype.itemsize
    # Gain and bias of each implementation, always its own, and their gradients.
    parameters = 2 * implementations * 2 * parameter_bytes(Op.LAYERNORM, cell)
    return values + parameters + 2 * placement_bytes(cell, implementations, shared=shared) + working_bytes(cell)


def step_bytes(cell: StepCell, variants: int) -> int:
    """Peak memory of measuring so many variants of a model, an upper estimate: what each keeps, and one step.

    A compiled model is compared with one in float64, which is there at the same time.
    """
    shape = cell.shape
    parameters = shape.parameters(Op.LAYERNORM)
    kept = (variants * _COPIES + 1) * parameters * cell.dtype.itemsize
    activations = step_activation_bytes(shape)
    exact = (2 * parameters * _FLOAT64 + 2 * activations) if cell.compiled else 0
    return kept + activations + exact


def step_activation_bytes(shape: ModelShape) -> int:
    """What a step keeps between its forward and its backward, in float32, an upper estimate."""
    stream = shape.rows * shape.width
    return _FLOAT32 * (shape.layers * _KEPT_A_LAYER * stream + _OF_LOGITS * shape.rows * shape.vocabulary)
