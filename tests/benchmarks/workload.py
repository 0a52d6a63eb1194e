# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The conversations that are timed: rounds of question and answer, then a question to be answered."""

from __future__ import annotations

from typing import Any

SYSTEM = "You are a travel assistant. Answer in the user's language, name your sources, and do not guess."
QUESTION = (
    "I will be in Zürich next weekend with two children and no car; what could we do on Saturday (number "
    "{}) if it rains?"
)
ANSWER = (
    "On a rainy Saturday the Technorama in Winterthur is a good choice: it takes twenty-five minutes by "
    "train, opens at ten, and has some five hundred things that children may touch. If that is too far, "
    "the zoo's Masoala hall is a rain forest under a roof, and tram 6 stops at its door.\n\n- Tickets: "
    "buy them online, 10 % off.\n- Lunch: both places have a restaurant & a picnic room."
)

# A page that somebody pastes into a question, a model writes, or a tool reads.
PAGE = (
    """
<section class="day">
  <h2>Saturday in Winterthur</h2>
  <p>On a rainy day the Technorama opens at <b>10:00</b>; <i>children under 6 pay nothing</i> &mdash; book online.</p>
  <ul><li><a href="https://example.org/technorama?lang=de">Zürich HB 09:07 → Oberwinterthur 09:32</a></li></ul>
  <script>if (rain > 2 && wind < 40) { plan("museum"); } // otherwise the zoo</script>
</section>
"""
    * 10
)


def _parameter(kind: str, description: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "description": description, **more}


def _tool(name: str, description: str, required: int, **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)[:required]}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


_CITY = _parameter("string", "The city, in its own language, e.g. 'Zürich' or 'Genève'.")
_DATE = _parameter("string", "The day in ISO 8601, e.g. 2025-03-01.")
_LIMIT = _parameter("integer", "How many results to return at most.", minimum=1, maximum=50, default=10)
_LANGUAGE = _parameter("string", "The language of the answer.", enum=["de", "fr", "it", "rm", "en"])
_PLACES = _parameter(
    "array", "Identifiers of places, as search_places returns them.", items={"type": "string"}
)
_PEOPLE = _parameter(
    "object",
    "How many people travel.",
    properties={"adults": {"type": "integer"}, "children": {"type": "integer"}},
    required=["adults"],
)

TOOLS = [
    _tool(
        "get_weather",
        "Get the forecast for a city: temperature, rain and wind, hour by hour.",
        2,
        city=_CITY,
        date=_DATE,
        unit=_parameter("string", "The unit of temperature.", enum=["celsius", "fahrenheit"]),
    ),
    _tool(
        "search_places",
        "Search museums, parks, restaurants and sights in a city. Results are ordered by rating.",
        2,
        city=_CITY,
        query=_parameter("string", "What to look for, in a few words."),
        category=_parameter("string", "The kind of place.", enum=["museum", "park", "restaurant", "sight"]),
        indoor=_parameter("boolean", "Whether the place must have a roof."),
        limit=_LIMIT,
    ),
    _tool(
        "get_opening_hours",
        "Get the opening hours of places on a day.",
        2,
        places=_PLACES,
        date=_DATE,
        language=_LANGUAGE,
    ),
    _tool(
        "find_connection",
        "Find train, tram and bus connections between two stops, earliest arrival first.",
        3,
        origin=_parameter("string", "The stop where the trip begins."),
        destination=_parameter("string", "The stop where the trip ends."),
        date=_DATE,
        time=_parameter("string", "The time of day, 24 hours, e.g. 09:30."),
        arrive_by=_parameter("boolean", "Whether the time is that of arrival.", default=False),
        via=_parameter("array", "Stops to pass, in order.", items={"type": "string"}),
    ),
    _tool(
        "get_ticket_price",
        "Get the price of tickets in Swiss francs, with discounts for children.",
        3,
        place=_parameter("string", "The identifier of the place."),
        date=_DATE,
        people=_PEOPLE,
    ),
    _tool(
        "book_table",
        "Book a table at a restaurant. Ask the user before calling this.",
        4,
        restaurant=_parameter("string", "The identifier of the restaurant."),
        date=_DATE,
        time=_parameter("string", "The time of day, 24 hours, e.g. 19:00."),
        people=_PEOPLE,
        note=_parameter("string", "What the restaurant should know, e.g. a high chair or an allergy."),
    ),
    _tool(
        "convert_currency",
        "Convert an amount of money at today's rate.",
        3,
        amount=_parameter("number", "The amount, at least 0.01.", minimum=0.01),
        source=_parameter("string", "The ISO 4217 code to convert from, e.g. EUR."),
        target=_parameter("string", "The ISO 4217 code to convert to, e.g. CHF."),
    ),
    _tool(
        "list_events",
        "List concerts, markets and festivals in a city between two days.",
        3,
        city=_CITY,
        first_day=_DATE,
        last_day=_DATE,
        language=_LANGUAGE,
        limit=_LIMIT,
    ),
]


def conversation(rounds: int, *, tools: bool, long: bool = False) -> list[dict[str, Any]]:
    """Return a conversation of complete rounds and one more question; with tools, a call a round.

    With ``long``, questions, answers and results are about 5,000 characters longer each.
    """
    page = PAGE if long else ""
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
    for number in range(rounds):
        messages.append({"role": "user", "content": QUESTION.format(number) + page})
        if tools:
            arguments = {"city": "Zürich", "query": f"rain {number}", "indoor": True, "limit": 5}
            call = {
                "id": f"call{number:05}",
                "type": "function",
                "function": {"name": "search_places", "arguments": arguments},
            }
            # glm4-tools and ministral-3 refuse a call whose content is null.
            messages.append({"role": "assistant", "content": "Let me look.", "tool_calls": [call]})
            result = (
                '{"places": [{"id": "technorama", "rating": 4.7}, {"id": "masoala", "rating": 4.6}]}' + page
            )
            messages.append({"role": "tool", "tool_call_id": f"call{number:05}", "content": result})
        messages.append({"role": "assistant", "content": ANSWER + page})
    messages.append({"role": "user", "content": QUESTION.format(rounds) + page})
    return messages
