"""Where the project's own files are, also when another workflow imports this one as a module."""

import os
import sys
from pathlib import Path

# The folder above this file: the Snakefile that snakemake was started with may be another workflow's.
ROOT = Path(str(workflow.current_basedir)).parent.parent
# Imports from the folder of the Snakefile work in scripts; here it has to be said.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


def own_path(path):
    """A path below the project's folder as jobs find it: as it is where they run there, else whole."""
    return path if os.path.samefile(os.curdir, ROOT) else str(ROOT / path)


def fill_in(settings, defaults):
    """Add what an importing workflow leaves out of its config for this one."""
    for key, default in defaults.items():
        if isinstance(default, dict) and isinstance(settings.get(key), dict):
            fill_in(settings[key], default)
        else:
            settings.setdefault(key, default)


def settle_paths(settings):
    """Let the config name the project's own sheets and weights, where the folder of the run has none."""
    for key, value in settings.items():
        if isinstance(value, dict):
            settle_paths(value)
        elif isinstance(value, str) and value.startswith(("config/", "resources/")):
            settings[key] = value if os.path.exists(value) else own_path(value)
