"""`tutti plan`: how many devices a load needs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tutti.cli.terminal import counted, print_table, progress_bar
from tutti.errors import InvalidInput
from tutti.files import save as save_file
from tutti.settings import load as load_settings


def plan(
    rps: Annotated[float, typer.Option(min=0.001, help="New requests per second.")],
    ttfa_ms: Annotated[
        float | None, typer.Option(min=1, help="Target for the first audio; default: 200 ms, on a processor 1500.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.5, max=600, help="Audio of a request, on average.")] = 8,
    device: Annotated[str | None, typer.Option(help="h200, n1x2, or a costs.json; default: this machine.")] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="With a costs.json of a processor: its cores.")] = None,
    measure: Annotated[str | None, typer.Option(help="Ask the server at this URL what its batches cost.")] = None,
    api_key: Annotated[str | None, typer.Option(help="Of that server.", envvar="TUTTI_API_KEY")] = None,
    save: Annotated[Path | None, typer.Option(help="With --measure: store the costs, for --device.")] = None,
    headroom: Annotated[float, typer.Option(min=0, max=0.9, help="Share left free for peaks.")] = 0.2,
    price_per_hour: Annotated[float | None, typer.Option(min=0, help="Of one device, in any currency.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say how many such machines a load needs: [bold]tutti plan --rps 2[/], or GPUs: [bold]--rps 500 --device h200[/]

    Simulates the real scheduler with the costs of a device, until 95 of 100 requests start in time and without gaps.
    """
    from tutti.plan import planner
    from tutti.plan.devices import find_device, this_machine
    from tutti.plan.measure import measure as measure_server

    if measure and device:
        raise InvalidInput("--measure and --device: choose one", param="device")
    with progress_bar() as show:
        if measure:
            show(f"measuring {measure}", 0, 0)
            known, report = measure_server(measure.rstrip("/"), api_key)
            if save:
                save_file(save, json.dumps(report, indent=1) + "\n")
        else:
            known = find_device(device, cores) if device else this_machine(load_settings({})[0])
        target_s = known.target_s if ttfa_ms is None else ttfa_ms / 1000
        n_steps = 0

        def on_step(name: str) -> None:
            nonlocal n_steps
            n_steps += 1
            show("simulating", 0, 0, f"step {n_steps}: {name}")

        result = planner.plan(known, rps, seconds, target_s, on_step, headroom)
    if as_json:
        print(json.dumps(result.as_dict(price_per_hour), indent=1))
        return
    each = result.forecast
    rows = [
        ("devices", f"{result.n_devices:,} x {result.device}"),
        ("first audio, p95", f"{1000 * each.p95_s:.0f} ms (p50 {1000 * each.p50_s:.0f} ms)"),
        ("busy", f"{each.busy:.0%}"),
        ("requests per second and device", f"{each.rate:.3g}"),
        ("refused, with gaps", f"{each.refused:.1%}, {each.with_gaps:.1%}"),
    ]
    if price_per_hour is not None:
        cost = result.cost_per_million(price_per_hour)
        rows.append(("price of a million characters", f"{cost:.4g}"))
    title = f"{rps:g} requests per second of {seconds:g} s, first audio within {1000 * target_s:g} ms"
    print_table((title, ""), rows)
    print(f"{headroom:.0%} of what they can serve is left for peaks (--headroom).")
    print(f"Set TUTTI_FIRST_AUDIO_MS={1000 * target_s:g} on {counted(result.n_devices, 'device')}.")
