"""Kokoro-82M written for padded batches: rows of any lengths, voices and speeds share one forward pass.

    layers.py     what both halves are built from: masked convolutions, AdaIN, the BiLSTM
    acoustic.py   tokens -> durations, text features, pitch and energy
    source.py     pitch -> the harmonic source and its spectrum; spectrum -> samples
    vocoder.py    features, pitch and energy -> samples
    weights.py    the official ONNX file, upstream's checkpoint or our own archive -> a state dict

Everything is [batch, time, channels]. A mask [batch, time, 1] travels with each tensor; what lies behind a row's end
is zero, or is made zero before anything can see it. So no row hears its neighbours.
"""
