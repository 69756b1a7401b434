"""The helper functions of the rules that draw images from captions."""

from vlmfair.synthesis.generators import (
    make_generator,
    pipeline_digest,
    unready_generators,
)

SYNTHESIS = config["vl_bicle"]["synthesis"]
# A config on top of another one cannot take a section away; null says that it is not wanted.
SYNTHESIS["generators"] = {
    name: {key: value for key, value in settings.items() if value is not None}
    for name, settings in SYNTHESIS["generators"].items()
    if settings is not None
}

try:
    GENERATORS = {
        name: make_generator(name, settings)
        for name, settings in SYNTHESIS["generators"].items()
    }
except VlmfairError as error:
    raise WorkflowError(str(error)) from None


def drawing_shard_count():
    """How many drawing jobs a generator has; it follows from the announced number of captions."""
    announced = DATASETS["coco_bias"]["pool"]
    return shard_count(announced, SYNTHESIS["images_per_shard"])


def drawn_shards(wildcards):
    """What every job of a generator has drawn."""
    folder = f"<suite>/vl_bicle/synthesis/{wildcards.generator}/shards"
    return [f"{folder}/{shard}.parquet" for shard in range(drawing_shard_count())]


def generator_settings(wildcards):
    """One generator's settings and, for a pipeline that lies in a folder, a digest of its content."""
    warn_of_unready_generators()
    name = wildcards.generator
    settings = as_param(SYNTHESIS["generators"][name])
    if GENERATORS[name].path is None or unready_generators({name: GENERATORS[name]}):
        return settings, ""
    try:
        return settings, pipeline_digest(GENERATORS[name])
    except VlmfairError as error:
        raise WorkflowError(str(error)) from None


def gpus_for_drawing(wildcards):
    """How many GPUs a drawing job leases: one, where the config wants any."""
    return min(1, config["inference"]["gpus"])


def drawn_files(name):
    """A file or folder of each generator."""
    return [f"<suite>/vl_bicle/synthesis/{source}/{name}" for source in GENERATORS]


def clip_of_run():
    """The CLIP of vl_bicle and the content of its files."""
    own = config["vl_bicle"]["encoder"]
    return as_param(own), files_of_encoder(own.get("weights") or own["model"])


@functools.cache
def warn_of_unready_generators():
    """Say in a dry-run what would stop the run itself."""
    sentence = unready_generators(GENERATORS)
    if sentence and (workflow.dryrun or workflow.executor_plugin is None):
        logger.warning(f"{sentence} Until then only a dry-run works.")


def stop_at_unready_generators():
    """Stop before the first job, and before models are asked, when a generator cannot draw."""
    jobs = [job for job in workflow.dag.needrun_jobs() if job.rule.name == "synthesize"]
    names = sorted({job.wildcards.generator for job in jobs})
    sentence = unready_generators({name: GENERATORS[name] for name in names})
    if sentence:
        raise WorkflowError(sentence)
