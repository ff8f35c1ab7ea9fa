"""The light vocoder: a small network, distilled from Kokoro's generator, that filters a harmonic source and noise.

    signal.py    pitch -> pulses; short-time Fourier transforms; in NumPy
    row.py       what the network knows of the whole row: statistics of its inputs, added to the timbre
    noise.py     row and place -> noise, the same in NumPy and PyTorch
    weights.py   the weights of the package, int8 and fp16
    light.npz    the weights; nano.npz: of the network that needs no decoder; card.md beside them says where they come
                 from and how good they are
    ranges.npz   how large the inputs of their products are in speech

The network runs at two steps a frame. It has no norm over time, and what it knows of the whole row is settled before
the first window, so a window with CONTEXT_STEPS on both sides gives exactly the samples of the whole row.
../onnx/light.py and nano.py run them in ONNX Runtime, ../torch/light_model.py in PyTorch.
"""
