"""Distillation of small vocoders from Kokoro: light from its generator, nano from its decoder and generator.

The path of a run, one file each:

    phonemes    words of nine languages in Kokoro's symbols, made once
    rows        random sentences, voices, speeds and prosody
    teacher     our batched Kokoro speaks them; decoder output, pitch, timbre and wave are the data
    pool        the data on the device; a batch is drawn inside the CUDA graph
    losses      how far a wave is from the teacher's
    critic      discriminators for the last part of a run
    optimiser   Muon, Adam and the average of the weights
    step        one training step, captured as a CUDA graph
    students    the networks that can be taught, by name, and what each reads
    evaluation  held-out rows, measured as `verify` does
    verify/     `python -m training.verify`: the gates of a light vocoder, against the exact one
    checkpoint  weights in pieces
    distil      the command

The text student, for PL-BERT: `texts` (natural text in phonemes), `text_pool`, `text_student` (the network),
`text_teacher`, `text_evaluation`, and `text_distil`, the command.

Read docs/light.md for how to run it, and docs/log for all runs.
"""
