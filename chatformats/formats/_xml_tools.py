# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The dialect of tools that HebaTron and JoyAI share: ``<function=…>`` with ``<parameter=…>`` inside.

Both templates describe tools in the same XML, print an argument's JSON where it is a container and
Python's ``str()`` of it elsewhere, and end with the same instructions.
"""

from __future__ import annotations

from ..undefined import UNDEFINED
from ..values import fields, is_container, is_mapping, iterated, to_json, to_str

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Final

    from ..formatter import Writer

# What is written by itself; every other key of a schema is written as <key>value</key>.
_PARAMETER_KEYS: Final = frozenset(("name", "type", "description"))
_PARAMETERS_KEYS: Final = frozenset(("type", "properties"))
_FUNCTION_KEYS: Final = frozenset(("type", "name", "description", "parameters"))

_INSTRUCTION: Final = """
</tools>

If you choose to call a function ONLY reply in the following format with NO suffix:

"""
_EXAMPLE: Final = """
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
"""
_IMPORTANT: Final = """

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be \
nested within """
_REMINDER: Final = """ XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function \
call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge \
and do not tell the user about function calls
</IMPORTANT>"""


def write_tools(out: Writer, tools: object, tag: Callable[[str], object], *, keywords_as_json: bool) -> None:
    """Write the tool block of a system prompt.

    ``tag`` is the verb for ``<tool_call>`` and its end: ``out.control`` where they are control tokens.
    With ``keywords_as_json``, ``enum`` and ``required`` are JSON whatever their value is, and
    ``required`` comes last; otherwise they are keys like any other.
    """
    scaffold, content = out.scaffold, out.content
    parameter_keys = _PARAMETER_KEYS | {"enum"} if keywords_as_json else _PARAMETER_KEYS
    parameters_keys = _PARAMETERS_KEYS | {"required"} if keywords_as_json else _PARAMETERS_KEYS
    scaffold("\n\n# Tools\n\nYou have access to the following functions:\n\n<tools>")
    for index, definition in enumerate(iterated(tools, "tools")):
        path = f"tools[{index}]"
        tool = fields(definition, path)
        function = tool.get("function", UNDEFINED)
        if function is not UNDEFINED:
            path += ".function"
            tool = fields(function, path)

        scaffold("\n<function>\n<name>")
        content(_text(tool.get("name", UNDEFINED), path, "name"))
        scaffold("</name>")
        if "description" in tool:
            scaffold("\n<description>")
            content(_text(tool["description"], path, "description").strip())
            scaffold("</description>")
        scaffold("\n<parameters>")
        path += ".parameters"
        parameters = fields(tool.get("parameters"), path)
        properties = parameters.get("properties")
        if is_mapping(properties):
            for name, value in properties.items():
                schema = value if isinstance(value, dict) else fields(value, path)
                scaffold("\n<parameter>\n<name>")
                content(_text(name, path, "properties"))
                scaffold("</name>")
                if "type" in schema:
                    scaffold("\n<type>")
                    content(_text(schema["type"], path, "type"))
                    scaffold("</type>")
                if "description" in schema:
                    scaffold("\n<description>")
                    content(_text(schema["description"], path, "description").strip())
                    scaffold("</description>")
                if keywords_as_json and "enum" in schema:
                    scaffold("\n<enum>")
                    content(to_json(schema["enum"], path))
                    scaffold("</enum>")
                _write_other_keys(out, schema, parameter_keys, path)
                scaffold("\n</parameter>")
        _write_other_keys(out, parameters, parameters_keys, path)
        if keywords_as_json and "required" in parameters:
            scaffold("\n<required>")
            content(to_json(parameters["required"], path + ".required"))
            scaffold("</required>")
        scaffold("\n</parameters>")
        _write_other_keys(out, tool, _FUNCTION_KEYS, path)
        scaffold("\n</function>")
    scaffold(_INSTRUCTION)
    tag("<tool_call>")
    scaffold(_EXAMPLE)
    tag("</tool_call>")
    scaffold(_IMPORTANT)
    tag("<tool_call>")
    tag("</tool_call>")
    scaffold(_REMINDER)


def _text(value: object, path: str, key: str) -> str:
    return value if isinstance(value, str) else to_str(value, f"{path}.{key}")


def _write_other_keys(out: Writer, schema: Mapping[str, object], written: frozenset[str], path: str) -> None:
    """Write what the templates' macro ``render_extra_keys`` does."""
    scaffold, content = out.scaffold, out.content
    for key, value in schema.items():
        if key not in written:
            tag = _text(key, path, "")
            scaffold("\n<")
            content(tag)
            scaffold(">")
            content(argument_text(value, path, key))
            scaffold("</")
            content(tag)
            scaffold(">")


def argument_text(value: object, path: str, key: object) -> str:
    """Return an argument as the models read it: JSON for a container, else Python's ``str()``."""
    if isinstance(value, str):
        return value
    if is_container(value):
        return to_json(value, f"{path}.{key}")
    return to_str(value, f"{path}.{key}")
