"""The application of Ray Serve: `build` makes it from the options of a command or of a config file."""

from typing import Any

import ray
from ray import serve
from ray.serve import Application
from ray.serve.config import AutoscalingConfig, AutoscalingContext, AutoscalingPolicy, RequestRouterConfig

from tutti_ray.options import ClusterOptions, parse_options
from tutti_ray.replica import Replica
from tutti_ray.router import LeastWaitRouter
from tutti_ray.scaling import wanted_replicas

MAX_REQUESTS = 4096  # of a replica at once, for Ray; our own admission control refuses much earlier
STATS_PERIOD_S = 0.1  # between two reports to the router; smaller costs more of the controller


def build(args: dict[str, Any]) -> Application:
    """Make the application; `args` are the fields of ClusterOptions. For `import_path: tutti_ray.app:build`."""
    return deploy(Replica, parse_options(args))


def deploy(replica: type[Replica], options: ClusterOptions) -> Application:
    gpus = options.gpus
    if gpus is None:
        gpus = 1.0 if ray.is_initialized() and ray.cluster_resources().get("GPU") else 0.0
        options = options.model_copy(update={"gpus": gpus})
    settings = options.server_settings
    router = {} if options.ingress == "haproxy" else {"request_router_class": LeastWaitRouter}
    deployment = serve.deployment(
        name="tutti",
        max_ongoing_requests=MAX_REQUESTS,
        max_queued_requests=-1,
        graceful_shutdown_timeout_s=settings.grace_s,
        graceful_shutdown_wait_loop_s=0.5,
        health_check_period_s=1,
        health_check_timeout_s=10,
        ray_actor_options={"num_cpus": options.cpus, "num_gpus": gpus, "resources": options.resources},
        request_router_config=RequestRouterConfig(request_routing_stats_period_s=STATS_PERIOD_S, **router),
        **_size(options),
    )(serve.ingress()(replica))
    return deployment.bind(settings.model_dump(exclude_unset=True))


def _size(options: ClusterOptions) -> dict[str, Any]:
    if options.max_replicas is None:
        return {"num_replicas": options.replicas}
    scaling = AutoscalingConfig(
        min_replicas=options.replicas,
        max_replicas=options.max_replicas,
        upscale_delay_s=2,
        downscale_delay_s=options.shrink_after_s,  # for so long without a break
        look_back_period_s=5,
        policy=AutoscalingPolicy(policy_function="tutti_ray.app:by_wait_and_busy"),
    )
    return {"autoscaling_config": scaling}


def by_wait_and_busy(context: AutoscalingContext) -> tuple[int, dict[str, Any]]:
    """The policy that Ray asks ten times a second; bounds and delays are Ray's."""
    metrics = context.aggregated_metrics or {}
    waits, busy = (list(metrics.get(name, {}).values()) for name in ("wait", "busy"))
    return wanted_replicas(context.target_num_replicas, waits, busy), {}
