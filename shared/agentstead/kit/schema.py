"""Published JSON Schemas, pruned to what a model needs; validation itself always uses the full pydantic model."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

# What validation says by itself when it is broken; a model that fills in arguments does not need it beforehand.
_INPUT_NOISE = ("minLength", "maxLength", "minItems", "maxItems", "pattern")
_OUTPUT_NOISE = ("description", "default", "minimum", "maximum", "format", *_INPUT_NOISE)
_PLAIN_DEFAULTS: tuple[Any, ...] = ("", False, [], {}, ())


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of an operation's arguments: strict at the top, no titles, no `$ref`, no `null`, no noise."""
    schema: dict[str, Any] = _quiet(_prune(model.model_json_schema(), {}))
    strict = {} if model.model_config.get("extra") == "ignore" else {"additionalProperties": False}
    return {"type": "object", "properties": {}, **schema, **strict}


def output_schema(model: type[BaseModel], *, shallow: bool) -> dict[str, Any]:
    """Return the schema of a result; `shallow` publishes what is nested as plain objects and demands no field."""
    raw = model.model_json_schema(mode="serialization")
    pruned = _prune(raw, {})
    properties = {name: _plain(field, shallow) for name, field in pruned.get("properties", {}).items()}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if shallow:
        return schema
    required = [name for name in pruned.get("required", ()) if not _nullable(raw["properties"][name])]
    return schema | ({"required": required} if required else {})


def _quiet(schema: Any) -> Any:
    """Drop bounds of texts and lists, defaults that say nothing, and strictness below the top."""
    if isinstance(schema, list):
        return [_quiet(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in (*_INPUT_NOISE, "additionalProperties")}
    if any(kept.get("default", ...) is plain or kept.get("default", ...) == plain for plain in _PLAIN_DEFAULTS):
        kept = {key: value for key, value in kept.items() if key != "default"}
    return {
        key: {name: _quiet(field) for name, field in value.items()} if key == "properties" else _quiet(value)
        for key, value in kept.items()
    }


def _nullable(field: Mapping[str, Any]) -> bool:
    return any(each.get("type") == "null" for each in field.get("anyOf", ()))


def _plain(field: Mapping[str, Any], shallow: bool) -> dict[str, Any]:
    kept = {key: value for key, value in field.items() if key not in _OUTPUT_NOISE}
    if not shallow:
        return kept
    if kept.get("type") == "object" or "properties" in kept:
        return {"type": "object"}
    if kept.get("type") == "array":
        item = kept.get("items", {})
        return {"type": "array", "items": {"type": item["type"]}} if "type" in item else {"type": "array"}
    kept.pop("enum", None)
    return kept


def _prune(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_prune(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    definitions = schema.get("$defs", definitions)
    kept = _without_null({key: value for key, value in schema.items() if key != "$defs"})
    if "$ref" in kept:
        target = definitions[kept.pop("$ref").rpartition("/")[2]]
        return _prune({**target, **kept}, definitions)
    if isinstance(kept.get("title"), str):
        del kept["title"]
    return {
        key: _properties(value, definitions) if key == "properties" else _prune(value, definitions)
        for key, value in kept.items()
    }


def _properties(fields: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _prune(field, definitions) for name, field in fields.items()}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Fold `anyOf [X, null]` into X, and drop a default of null: a caller leaves the field out."""
    if schema.get("default", ...) is None:
        schema = {key: value for key, value in schema.items() if key != "default"}
    options = schema.get("anyOf")
    if not options or not any(each.get("type") == "null" for each in options):
        return schema
    real = [each for each in options if each.get("type") != "null"]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return real[0] | rest if len(real) == 1 else rest | {"anyOf": real}
