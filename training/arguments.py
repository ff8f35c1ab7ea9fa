"""The options of `training.distil`, and what they mean."""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import torch

from training.losses import LossWeights
from training.schedule import Schedule
from training.step import StepOptions
from training.students import STUDENTS

Command = Callable[[argparse.Namespace], None]


def parse_arguments(about: str | None, functions: Mapping[str, Command]) -> argparse.Namespace:
    """Parse the command line; `command` of the result is one of the functions, by the name it is called by."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    defaults, schedule = StepOptions(), Schedule(1.0)

    def add(name: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name)
        command.set_defaults(command=functions[name])
        command.add_argument("--tiny", action="store_true", help="a small network on the processor")
        return command

    def add_student(command: argparse.ArgumentParser) -> None:
        command.add_argument("--student", choices=tuple(STUDENTS), default="light")

    def add_step(command: argparse.ArgumentParser) -> None:
        add_student(command)
        command.add_argument("--rows", type=int, default=defaults.rows)
        command.add_argument("--steps", type=int, default=defaults.steps, help="of a row, 80 a second")
        command.add_argument("--critic-rows", type=int, default=defaults.critic_rows)
        command.add_argument("--critic-share", type=float, default=defaults.critic_share)
        command.add_argument("--average", type=float, default=defaults.average)
        command.add_argument("--adam", action="store_true", help="instead of Muon")
        command.add_argument("--loss-weights", default="{}", help='as JSON: {"mel": 2}')
        command.add_argument("--out", type=Path, required=True)

    train_parser = add("train")
    add_step(train_parser)
    train_parser.add_argument("--data", type=Path, required=True)
    train_parser.add_argument("--seconds", type=float, required=True, help="of training")
    train_parser.add_argument("--start", type=Path, help="weights to go on from")
    train_parser.add_argument("--critic", type=Path, help="critics to go on from")
    train_parser.add_argument("--imitation-part", type=float, default=schedule.imitation_part,
                              help="of the time, in which nano imitates light")  # fmt: skip
    train_parser.add_argument("--critic-part", type=float, default=schedule.critic_part, help="of the time")
    train_parser.add_argument("--rate", type=float, default=schedule.rate)
    train_parser.add_argument("--critic-phase-rate", type=float, default=schedule.critic_phase_rate)
    train_parser.add_argument("--critic-rate", type=float, default=schedule.critic_rate)
    train_parser.add_argument("--warm-up", type=float, default=schedule.warm_up_s, help="seconds")
    train_parser.add_argument("--critic-alone", type=float, default=schedule.critic_alone_s, help="seconds")
    train_parser.add_argument("--pool-seconds", type=float, default=250_000, help="of speech; the oldest is replaced")
    train_parser.add_argument("--first-seconds", type=float, default=40_000, help="of speech before training begins")
    train_parser.add_argument("--pace", type=float, default=650, help="seconds of new speech for a second of training")
    train_parser.add_argument("--batch", type=int, default=960, help="rows that the teacher gets at once")
    train_parser.add_argument("--held-out", type=int, default=6, help="rows of each voice")
    train_parser.add_argument("--mode", choices=("auto", "eager", "graph", "compiled"), default="auto")
    train_parser.add_argument("--seed", type=int, default=0)
    train_parser.add_argument("--bases", type=Path, help="of the decoder's convolutions")
    bases_parser = add("bases")
    bases_parser.add_argument("--data", type=Path, required=True)
    bases_parser.add_argument("--out", type=Path, required=True)
    bases_parser.add_argument("--start", type=Path, required=True, help="weights of the light network")
    bases_parser.add_argument("--bases", type=Path, help="to go on from")
    bases_parser.add_argument("--seconds", type=float, required=True, help="of training")
    bases_parser.add_argument("--data-seconds", type=float, default=250_000, help="of speech, at first")
    bases_parser.add_argument("--batch", type=int, default=960, help="rows that the teacher gets at once")
    bases_parser.add_argument("--rank", type=int, default=384, help="a multiple of 128")
    bases_parser.add_argument("--shortcut-rank", type=int, default=128, help="likewise")
    bases_parser.add_argument("--rate", type=float, default=2e-4)
    bases_parser.add_argument("--held-out", type=int, default=6, help="rows of each voice; 0: no score")
    bases_parser.add_argument("--seed", type=int, default=0)
    bench_parser = add("bench")
    add_step(bench_parser)
    bench_parser.add_argument("--modes", default="graph,compiled,graph+speaker,compiled+speaker")
    bench_parser.add_argument("--limit", type=float, default=150, help="seconds for each mode")
    one_parser = add("bench-one")
    add_step(one_parser)
    one_parser.add_argument("--mode", default="eager")
    score_parser = add("score")
    add_student(score_parser)
    score_parser.add_argument("--data", type=Path, required=True)
    score_parser.add_argument("--weights", type=Path, required=True)
    score_parser.add_argument("--bases", type=Path, help="of the decoder's convolutions")
    score_parser.add_argument("--held-out", type=int, default=6)
    score_parser.add_argument("--every", type=int, default=1, help="take each n-th row")
    mean_parser = add("mean")
    mean_parser.add_argument("--weights", type=Path, nargs="+", required=True)
    mean_parser.add_argument("--to", type=Path, required=True)
    pack_parser = add("pack")
    pack_parser.add_argument("--home", type=Path, required=True, help="where `tutti pull` put the official files")
    pack_parser.add_argument("--to", type=Path, required=True)
    return parser.parse_args()


def step_options(args: argparse.Namespace) -> StepOptions:
    options = StepOptions(rows=args.rows, steps=args.steps, critic_rows=args.critic_rows, muon=not args.adam,
                          critic_share=args.critic_share, average=args.average,
                          weights=LossWeights(**json.loads(args.loss_weights)))  # fmt: skip
    return replace(options, rows=4, steps=32, critic_rows=2, critic_steps=32) if args.tiny else options


def find_device(args: argparse.Namespace) -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() and not args.tiny else "cpu")


def allow_tf32() -> None:
    """For the training; the exact durations for which the model disabled it do not matter here."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
