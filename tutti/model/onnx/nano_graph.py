"""The nano network as an ONNX graph for processors: matrices in int8, everything else in fp32."""

from tutti.model.light.weights import BLOCK, Int8Matrix, Weights, matrix, vector
from tutti.model.onnx.graph import Dimensions, GraphBuilder
from tutti.model.onnx.light_graph import RANGES, SPECTRA, STYLE, TIMBRE, block, head

TEXT, CURVES = "text", "curves"  # inputs: [1, n, 512] of frames, [1, 3, 2n] energy and pitch of steps
FEATURES, N_CURVES, STEPS_PER_FRAME = 512, 3, 2
FRAME_TAPS, TAPS = 5, 7


def n_blocks(weights: Weights) -> tuple[int, int]:
    """Of the frames, and of the steps."""
    of_frames, of_steps = (
        sum(name.startswith(kind) and name.endswith(".gain") for name in weights)
        for kind in ("frame_blocks.", "step_blocks.")
    )
    return of_frames, of_steps


def nano_graph(weights: Weights) -> bytes:
    """Build the graph; serialised, for an inference session.

    Ranges: after each block of frames the frames that later ones need; the same as steps among all that were given;
    after each block of steps the steps.
    """
    graph, (n_frame_blocks, n_step_blocks) = GraphBuilder(), n_blocks(weights)
    ends = graph.split(RANGES, 2 * (n_frame_blocks + 1 + n_step_blocks))
    ranges = list(zip(ends[::2], ends[1::2], strict=True))
    h = _entry(graph, weights)
    for i in range(n_frame_blocks):
        h = block(graph, weights, f"frame_blocks.{i}.", h, ranges[i])
    h = _steps(graph, weights, h, ranges[n_frame_blocks])
    for i in range(n_step_blocks):
        h = block(graph, weights, f"step_blocks.{i}.", h, ranges[n_frame_blocks + 1 + i])
    head(graph, weights, h)
    inputs: dict[str, Dimensions] = {TEXT: [1, "n", FEATURES], CURVES: [1, N_CURVES, "2n"], STYLE: [1, TIMBRE]}
    return graph.serialise("nano", inputs, SPECTRA, {RANGES: [len(ends)]})


def _entry(graph: GraphBuilder, weights: Weights) -> str:
    """A product of each frame. The curves of its two steps are not quantised: each has a range of its own."""
    weight = matrix(weights, "entry.weight")  # [width, 512 + 6]
    of_text = Int8Matrix(weight.values[:, :FEATURES], weight.scales[:, : FEATURES // BLOCK], range=weight.range)
    h = graph.product(TEXT, of_text, graph.constant(vector(weights, "entry.bias")))
    of_curves = weight.float32()[:, FEATURES:].reshape(-1, STEPS_PER_FRAME, N_CURVES).transpose(0, 2, 1)
    curves = graph.add("Conv", CURVES, graph.constant(of_curves), kernel_shape=[2], strides=[STEPS_PER_FRAME])
    return graph.add("Add", h, graph.transpose(curves))


def _steps(graph: GraphBuilder, weights: Weights, h: str, needs: tuple[str, str]) -> str:
    """Each frame becomes two steps, and a convolution over the curves is added."""
    split, width = matrix(weights, "split.weight"), len(vector(weights, "entry.bias"))
    both = graph.product(h, split, graph.constant(vector(weights, "split.bias")))
    steps = graph.add("Reshape", both, graph.integers(1, -1, width))
    weight, bias = (graph.constant(vector(weights, f"curves.{kind}")) for kind in ("weight", "bias"))
    curves = graph.add("Conv", CURVES, weight, bias, kernel_shape=[TAPS], pads=[TAPS // 2] * 2)
    return graph.add("Add", steps, graph.steps(graph.transpose(curves), *needs))
