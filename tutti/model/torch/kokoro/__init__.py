"""Kokoro-82M written for padded batches: rows of any lengths, voices and speeds share one forward pass.

    acoustic.py   tokens -> durations, text features, pitch and energy
    vocoder.py    features, pitch and energy -> samples
    source.py     pitch -> the harmonic source and its spectrum; spectrum -> samples
    convs.py      convolutions and the residual block of both halves
    norms.py      AdaIN and what stands around it
    lstm.py       the BiLSTM
    linear.py     linear layers that durations hang on
    branches.py   what runs side by side
    kernels/      the same as in these files, for CUDA devices
    rows.py       where each row of a padded tensor ends
    batches.py    what travels between the host and the device, and when
    weights.py    the official ONNX file, upstream's checkpoint or our own archive -> a state dict

Everything is [batch, time, channels], and `Ends` travels with each tensor. What lies behind a row's end is zero, or is
made zero before anything can see it. So no row hears its neighbours.
"""
