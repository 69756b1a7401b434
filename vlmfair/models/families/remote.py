"""Families whose code comes with the checkpoint: what they have in common.

They need an older transformers than the stock families, in an environment of their own, so that
nothing here may use what came later. They are asked by whole forwards only.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

from vlmfair.errors import ModelError
from vlmfair.models.families.base import Family

IMAGE = "<vlmfair-image>"


class RemoteProcessor:
    """A tokenizer and an image processor under the names that stock processors have.

    `chat_template` is the family's, or None for the tokenizer's own, which takes texts only: there
    an image is a line of its own before the text of its turn.
    """

    image_token = IMAGE

    def __init__(self, tokenizer: Any, image_processor: Any, chat_template: str | None) -> None:
        self.tokenizer = tokenizer
        self.image_processor = image_processor
        self._takes_images = chat_template is not None
        self.chat_template = chat_template or getattr(tokenizer, "chat_template", None)

    def apply_chat_template(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        **arguments: Any,
    ) -> str:
        """Return the conversation as text; a continued message ends with its own last word."""
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        shown = messages if self._takes_images else [_as_text(message) for message in messages]
        text = environment.from_string(str(self.chat_template)).render(
            messages=shown, add_generation_prompt=add_generation_prompt, **arguments
        )
        if not continue_final_message:
            return text
        final = str(messages[-1]["content"][-1]["text"]).strip()
        return text[: text.rindex(final) + len(final)]


def _as_text(message: Mapping[str, Any]) -> dict[str, str]:
    lines = [IMAGE if item["type"] == "image" else str(item["text"]) for item in message["content"]]
    return {"role": str(message["role"]), "content": "\n".join(lines)}


class RemoteFamily(Family):
    """Base of the families with remote code: no shared features, no shared prefix."""

    needs_remote_code = True
    # The prompt format that the model's code builds itself; None: the tokenizer's chat template.
    chat_template: str | None = None
    # The automatic class that the checkpoint's auto_map is registered for.
    auto_class = "AutoModelForCausalLM"
    # Tokens at which the model's own `chat` ends an answer.
    end_tokens: tuple[str, ...] = ()
    # Arguments that the model's own code wants when it is loaded.
    load_options: Mapping[str, Any] = MappingProxyType({})

    def model_class(self) -> Any:
        """Return a loader that speaks to this version of transformers."""
        return SimpleNamespace(from_pretrained=self._load)

    def _load(self, folder: Path, **options: Any) -> Any:
        import transformers

        check_own_code(folder)
        major, minor = (int(part) for part in transformers.__version__.split(".")[:2])
        if (major, minor) < (4, 56):
            options["torch_dtype"] = options.pop("dtype")
        with _own_code(folder):
            loaded = getattr(transformers, self.auto_class).from_pretrained(
                folder, **{**options, **self.load_options}
            )
        self._add_end_tokens(loaded[0] if isinstance(loaded, tuple) else loaded, folder)
        return loaded

    def _add_end_tokens(self, model: Any, folder: Path) -> None:
        """Let answers also end where the model's own `chat` ends them."""
        from transformers import AutoTokenizer, GenerationConfig

        if getattr(model, "generation_config", None) is None:
            model.generation_config = GenerationConfig()
        tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=True, local_files_only=True
        )
        declared = model.generation_config.eos_token_id
        known = declared if isinstance(declared, list) else [declared]
        ids = {*known, *(tokenizer.convert_tokens_to_ids(token) for token in self.end_tokens)}
        model.generation_config.eos_token_id = sorted(ids - {None}) or None

    def load_processor(self, folder: Path, options: Mapping[str, Any]) -> Any:
        """Return tokenizer, image processor and chat template.

        Raises ModelError on foreign code, and on code that does not run with what is installed.
        """
        from transformers import AutoTokenizer

        check_own_code(folder)
        with _own_code(folder):
            tokenizer = AutoTokenizer.from_pretrained(folder, **options)
            image_processor = self.image_processor(folder, options)
        return RemoteProcessor(tokenizer, image_processor, self.chat_template)

    def image_processor(self, folder: Path, options: Mapping[str, Any]) -> Any:
        """Return what turns images into tensors."""
        from transformers import AutoImageProcessor

        return AutoImageProcessor.from_pretrained(folder, **options)

    def obstacle(self, model: Any, longest: int, images: int = 1) -> str | None:
        """Return that the model's own code offers no cache that could be shared."""
        return "the model's own code offers no cache that prompts could share"


@contextlib.contextmanager
def _own_code(folder: Path) -> Iterator[None]:
    """Say which environment a checkpoint's code needs, where it does not run in this one."""
    import transformers

    try:
        yield
    except (ImportError, AttributeError, TypeError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ModelError(
            f"{folder}: the model's own code does not run with transformers "
            f"{transformers.__version__} and what is installed beside it ({reason.rstrip('.')}). "
            f"Run snakemake with --use-conda, or this job where requirements-legacy.lock is "
            f"installed."
        ) from error


def check_own_code(folder: Path) -> None:
    """Raise ModelError when a checkpoint takes code from another repository than its own.

    `auto_map` may say `owner/other--module.Class`; that code is not of the pinned commit.
    """
    for name in ("config.json", "tokenizer_config.json", "preprocessor_config.json"):
        path = folder / name
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        for value in (content.get("auto_map") or {}).values():
            for entry in value if isinstance(value, list) else [value]:
                if entry and "--" in entry:
                    raise ModelError(
                        f"{folder}/{name}: the code {entry} lies in another repository than the "
                        f"pinned one. Use a model that carries its own code."
                    )
