"""Checks data against the part of JSON Schema that docs/report.schema.json uses.

A keyword that is not known here is an error, so the schema cannot say what is not checked.
"""

from __future__ import annotations

from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
SAID = {"$schema", "title", "description", "$defs"}
KNOWN = SAID | {
    *("type", "properties", "required", "additionalProperties", "propertyNames", "items"),
    *("enum", "const", "minimum", "maximum", "$ref"),
}


def problems(data: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> list[str]:
    """What is wrong with `data`, in words; nothing if it fits."""
    assert set(schema) <= KNOWN, f"{at}: unknown keywords {set(schema) - KNOWN}"
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return problems(data, root["$defs"][name], root, at)
    if "const" in schema and data != schema["const"]:
        return [f"{at}: {data!r} is not {schema['const']!r}"]
    if "enum" in schema and data not in schema["enum"]:
        return [f"{at}: {data!r} is none of {schema['enum']}"]
    wanted = schema.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if wanted and not any(_is(data, name) for name in wanted):
        return [f"{at}: {data!r} is no {' or '.join(wanted)}"]
    found = []
    if isinstance(data, (int, float)):
        if data < schema.get("minimum", data) or data > schema.get("maximum", data):
            found.append(f"{at}: {data} is out of bounds")
    elif isinstance(data, list):
        for number, item in enumerate(data):
            found += problems(item, schema.get("items", {}), root, f"{at}[{number}]")
    elif isinstance(data, dict):
        found += _object(data, schema, root, at)
    return found


def _object(
    data: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], at: str
) -> list[str]:
    found = [f"{at}: {key} is missing" for key in schema.get("required", []) if key not in data]
    more = schema.get("additionalProperties", {})
    for key, value in data.items():
        found += problems(key, schema.get("propertyNames", {}), root, f"{at}.{key} (name)")
        if key in schema.get("properties", {}):
            found += problems(value, schema["properties"][key], root, f"{at}.{key}")
        elif more is False:
            found.append(f"{at}: {key} is not described")
        else:
            found += problems(value, more, root, f"{at}.{key}")
    return found


def _is(data: Any, name: str) -> bool:
    if isinstance(data, bool):
        return name == "boolean"
    return isinstance(data, TYPES[name])
