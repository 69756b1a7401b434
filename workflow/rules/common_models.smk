"""The helper functions of the rules about models: which ones a run needs."""

from vlmfair.models.components import components_named


def asked_models():
    """The models of the sheet that the config asks for anything, in its order."""
    asked = set(itertools.chain.from_iterable(models_by_paper(config).values()))
    asked |= {config["lvlm_fairness"]["generator"], config["vl_bicle"]["judge"]}
    return tuple(name for name in MODELS if name in asked)


def asked_components():
    """The encoders and pipelines of the sheet whose folders the config names, in its order."""
    named = components_named(config, SHEETS.components)
    return tuple(name for name in SHEETS.components if name in named)
