"""Kokoro-82M for padded batches: rows of any lengths, voices and speeds share one forward pass.

    acoustic.py      tokens -> durations, text features, pitch and energy
    vocoder.py       features, pitch and energy -> samples
    source.py        pitch -> the harmonic source and its spectrum; spectrum -> samples
    convs.py         convolutions and the residual block of both halves
    adain.py         AdaIN, and the sums and activations around it
    lstm.py          the bidirectional LSTM
    linear.py        linear layers that durations depend on
    side_streams.py  branches that run in parallel
    masks.py         row lengths and masks
    padding.py       rows <-> padded tensors, host <-> device
    weights.py       the official ONNX file, upstream's checkpoint or our own archive -> a state dict
    ../kernels/      Triton versions of the same operations, for CUDA devices

All tensors are [batch, time, channels], and a `RowMask` travels with each. Values after a row's end are zero, or are
set to zero before anything reads them. So no row hears its neighbours.
"""
