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
    from collections.abc import Mapping
    from typing import Final

    from ..errors import Place
    from ..formatter import Writer

# What is written by itself; every other key of a schema is written as <key>value</key>.
_PARAMETER_KEYS: Final = frozenset(("name", "type", "description"))
_PARAMETERS_KEYS: Final = frozenset(("type", "properties"))
_PARAMETER_KEYS_AND_ENUM: Final = _PARAMETER_KEYS | {"enum"}
_PARAMETERS_KEYS_AND_REQUIRED: Final = _PARAMETERS_KEYS | {"required"}
_FUNCTION_KEYS: Final = frozenset(("type", "name", "description", "parameters"))

_INSTRUCTION: Final = """
</tools>

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
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
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be \
nested within <tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function \
call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge \
and do not tell the user about function calls
</IMPORTANT>"""


def write_tools(out: Writer, tools: object, keywords_as_json: bool) -> None:
    """Write the tool block of a system prompt.

    With ``keywords_as_json``, ``enum`` and ``required`` are JSON whatever their value is, and
    ``required`` comes last; otherwise they are keys like any other.
    """
    scaffold, content = out.scaffold, out.content
    scaffold("\n\n# Tools\n\nYou have access to the following functions:\n\n<tools>")
    for index, definition in enumerate(iterated(tools, ("tools",))):
        place: Place = ("tools", index)
        tool = fields(definition, place)
        function = tool.get("function", UNDEFINED)
        if function is not UNDEFINED:
            place = ("tools", index, "function")
            tool = fields(function, place)

        scaffold("\n<function>\n<name>")
        content(to_str(tool.get("name", UNDEFINED), (*place, "name")))
        scaffold("</name>")
        if "description" in tool:
            scaffold("\n<description>")
            content(to_str(tool["description"], (*place, "description")).strip())
            scaffold("</description>")
        scaffold("\n<parameters>")
        _write_parameters(out, tool.get("parameters"), (*place, "parameters"), keywords_as_json)
        scaffold("\n</parameters>")
        _write_other_keys(out, tool, _FUNCTION_KEYS, place)
        scaffold("\n</function>")

    out.markup(_INSTRUCTION)


def _write_parameters(out: Writer, value: object, place: Place, keywords_as_json: bool) -> None:
    scaffold, content = out.scaffold, out.content
    written = _PARAMETER_KEYS_AND_ENUM if keywords_as_json else _PARAMETER_KEYS
    parameters = fields(value, place)
    properties = parameters.get("properties")
    if is_mapping(properties):
        listed: Place = (*place, "properties")
        for name, parameter in properties.items():
            schema = parameter if isinstance(parameter, dict) else fields(parameter, (*listed, name))
            scaffold("\n<parameter>\n<name>")
            content(name if isinstance(name, str) else to_str(name, listed))
            scaffold("</name>")
            if "type" in schema:
                kind = schema["type"]
                scaffold("\n<type>")
                content(kind if isinstance(kind, str) else to_str(kind, (*listed, name, "type")))
                scaffold("</type>")
            if "description" in schema:
                text = schema["description"]
                if not isinstance(text, str):
                    text = to_str(text, (*listed, name, "description"))
                scaffold("\n<description>")
                content(text.strip())
                scaffold("</description>")
            if keywords_as_json and "enum" in schema:
                scaffold("\n<enum>")
                content(to_json(schema["enum"], (*listed, name, "enum")))
                scaffold("</enum>")
            if not written.issuperset(schema):
                _write_other_keys(out, schema, written, (*listed, name))
            scaffold("\n</parameter>")

    if keywords_as_json:
        _write_other_keys(out, parameters, _PARAMETERS_KEYS_AND_REQUIRED, place)
        if "required" in parameters:
            scaffold("\n<required>")
            content(to_json(parameters["required"], (*place, "required")))
            scaffold("</required>")
    else:
        _write_other_keys(out, parameters, _PARAMETERS_KEYS, place)


def _write_other_keys(
    out: Writer, schema: Mapping[str, object], written: frozenset[str], place: Place
) -> None:
    # The templates' macro ``render_extra_keys``.
    scaffold, content = out.scaffold, out.content
    for key, value in schema.items():
        if key not in written:
            tag = to_str(key, place)
            scaffold("\n<")
            content(tag)
            scaffold(">")
            content(value if isinstance(value, str) else argument_text(value, (*place, key)))
            scaffold("</")
            content(tag)
            scaffold(">")


def argument_text(value: object, place: Place) -> str:
    """Return a value as the models read it: JSON for a container, else Python's ``str()``."""
    return to_json(value, place) if is_container(value) else to_str(value, place)
