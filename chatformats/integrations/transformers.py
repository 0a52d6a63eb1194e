# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Tokenizers of transformers whose ``apply_chat_template`` renders natively, where it can.

The messages are edited first by transformers' own functions, so that the prompt is the same. What is not
rendered natively goes the tokenizer's own way: a template that is not recognised, ``documents``,
``sanitize_control_tokens``, the continuation of another field than the content, a keyword by which the
template might be changed, and whatever a formatter refuses, which so ends in the tokenizer's own error.
"""

from __future__ import annotations

import inspect
import re
from functools import cache, lru_cache

from ..errors import ChatFormatError
from ..fingerprint import for_template
from ..undefined import UNDEFINED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from ..spans import Rendered

    T = TypeVar("T")

_formatter = lru_cache(maxsize=64)(for_template)


def accelerate(tokenizer: T) -> T:
    """Let a tokenizer's ``apply_chat_template`` render natively; return the same tokenizer.

    Nothing else of it changes. Its class becomes a subclass of its own with the same name, so that copies
    and pickles are accelerated too, and ``save_pretrained`` writes what it did; what is loaded from there
    is not accelerated until asked. The template is looked at in each call: another one may be set later.

    Where the prompt is rendered natively, ``return_assistant_tokens_mask`` marks what the model writes,
    although the template does not say so; transformers would return zeros.

    Raises TypeError for what is no tokenizer of transformers, or has an ``apply_chat_template`` of its own, and
    ImportError where transformers is not installed, or is older than 5.24.
    """
    _transformers()
    from transformers import PreTrainedTokenizerBase

    cls: Any = type(tokenizer)
    if not issubclass(cls, _Accelerated):
        method: object = getattr(cls, "apply_chat_template", None)
        if method is not PreTrainedTokenizerBase.apply_chat_template:
            raise TypeError(
                f"expected a tokenizer with transformers' apply_chat_template, got {cls.__name__}"
            )
        tokenizer.__class__ = _accelerated(cls)
    return tokenizer


@cache
def _accelerated(cls: type) -> type:
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls.__name__, (_Accelerated, cls), {**names, "_plain_class": cls})


class _Accelerated:
    _plain_class: type[Any]

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[Any]]:
        # The class cannot be found by its name, which is another's: pickle and copy take that other one.
        plain = object.__new__(self._plain_class)
        plain.__dict__.update(self.__dict__)
        return accelerate, (plain,)

    def apply_chat_template(
        self: Any,
        conversation: Any,
        tools: Any = None,
        documents: Any = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        tokenize: bool = True,
        sanitize_control_tokens: bool = False,
        padding: Any = False,
        truncation: Any = False,
        max_length: int | None = None,
        return_tensors: Any = None,
        return_dict: bool = True,
        return_assistant_tokens_mask: bool = False,
        tokenizer_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Convert a conversation, or several, to token ids: see the method of the tokenizer's own class."""
        prompts: list[Rendered] | list[str] | None = None
        unmasked = not return_assistant_tokens_mask
        continued = continue_final_message if isinstance(continue_final_message, str) else ""
        if (
            documents is None
            and not sanitize_control_tokens
            and continued in ("", "content")
            and (unmasked or (tokenize and return_dict and not continue_final_message))
        ):
            prompts = _prompts(
                self.get_chat_template(chat_template, tools),
                conversation,
                tools,
                {**self.special_tokens_map, **kwargs},
                add_generation_prompt,
                bool(continue_final_message),
                segments=not unmasked,
            )
        if prompts is None:
            own: Any = super()
            # fmt: off
            return own.apply_chat_template(
                conversation, tools, documents, chat_template, add_generation_prompt, continue_final_message,
                tokenize, sanitize_control_tokens, padding, truncation, max_length, return_tensors, return_dict,
                return_assistant_tokens_mask, tokenizer_kwargs, **kwargs,
            )
            # fmt: on

        texts = [prompt if isinstance(prompt, str) else prompt.text for prompt in prompts]
        batched = _is_batch(conversation)
        given = texts if batched else texts[0]
        if not tokenize:
            return given
        out = self(
            given,
            padding=padding,
            truncation=truncation,
            max_length=max_length,
            add_special_tokens=False,
            return_tensors=return_tensors,
            sanitize_control_tokens=False,
            **(tokenizer_kwargs or {}),
        )
        if not return_dict:
            return out["input_ids"]
        if not unmasked:
            masks = [prompts[i].mask(encoding.offsets) for i, encoding in enumerate(out.encodings)]  # type: ignore[union-attr]  # these are segments
            out["assistant_masks"] = masks if batched or return_tensors else masks[0]
            if return_tensors:
                out.convert_to_tensors(tensor_type=return_tensors)
        return out


def _transformers() -> Any:
    # Here and not above: what only looks for doctests, or for documentation, has no need of it.
    try:
        from transformers.utils import chat_template_utils as utils
    except ImportError as error:
        raise ImportError(f"{__name__} needs transformers 5.24 or later") from error
    if not hasattr(utils, "_message_objects_to_dicts"):
        raise ImportError(f"{__name__} needs transformers 5.24 or later")
    return utils


def _is_batch(conversation: Any) -> bool:
    return isinstance(conversation[0], (list, tuple)) or hasattr(conversation[0], "messages")


def _prompts(
    source: str,
    conversation: Any,
    tools: Any,
    variables: Mapping[str, Any],
    add_generation_prompt: bool,
    continue_final_message: bool,
    *,
    segments: bool,
) -> list[Rendered] | list[str] | None:
    """Return the prompts that the template makes, or None where the tokenizer is to see to it."""
    formatter = _formatter(source) if isinstance(source, str) else None
    # What can be gone through only once is left to the tokenizer.
    if formatter is None or not isinstance(conversation, (list, tuple)) or not conversation:
        return None
    known = formatter.variables
    if any(key not in known and _may_change(source, key) for key in variables):
        return None
    if continue_final_message and "continue_final_message" in known:
        return None
    conversations = conversation if _is_batch(conversation) else [conversation]
    if not all(isinstance(getattr(chat, "messages", chat), (list, tuple)) for chat in conversations):
        return None
    utils = _transformers()
    chats = [_edited(utils, chat) for chat in conversations]
    if tools is not None:
        if not isinstance(tools, (list, tuple)):
            return None
        tools = [
            utils.get_json_schema(t) if inspect.isfunction(t) or inspect.ismethod(t) else t for t in tools
        ]
        if not all(isinstance(tool, dict) for tool in tools):
            return None
        tools = tools if _is_plain(tools) else utils._plain_template_data(tools)
    options = {key: utils._plain_template_data(variables[key]) for key in known if key in variables}
    for key in ("bos_token", "eos_token"):
        # A template prints nothing for a token that the tokenizer has not.
        if key in known and key not in options:
            options[key] = UNDEFINED
    render: Callable[..., Any] = formatter.render_segments if segments else formatter.render
    try:
        return [
            render(
                chat,
                tools,
                add_generation_prompt=add_generation_prompt,
                **({"continue_final_message": True} if continue_final_message else {}),
                **options,
            )
            for chat in chats
        ]
    except ChatFormatError:
        return None


@lru_cache(maxsize=1024)
def _may_change(source: str, key: str) -> bool:
    # The two are parameters of transformers' own. A name is free where it is no attribute and not just set.
    free = rf"(?<![.\w]){re.escape(key)}(?!\w|\s*=(?!=))"
    return key in ("conversations", "compiled_template") or re.search(free, source) is not None


def _edited(utils: Any, chat: Any) -> Any:
    """Return messages as transformers passes them to a template."""
    if _is_plain(chat) and all(type(message) is dict for message in chat):
        # Four times as fast as the functions below, which look at each string in seven ways.
        chat = [{key: value for key, value in message.items() if value is not None} for message in chat]
    else:
        chat = utils._plain_template_data(utils._normalize_chat_messages(chat))
    return utils._alias_reasoning_fields(chat)


def _is_plain(value: object) -> bool:
    """Say whether a value is made of nothing but what JSON is: transformers would only copy it."""
    kind = type(value)
    if kind is dict:
        return all(type(key) is str and _is_plain(item) for key, item in value.items())  # type: ignore[attr-defined]  # a dict
    if kind is list:
        return all(map(_is_plain, value))  # type: ignore[call-overload]  # a list
    return value is None or kind is str or kind is int or kind is float or kind is bool
