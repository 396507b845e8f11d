"""JSON Schema, as much of it as docs/schedule.schema.json uses. An unknown keyword is an error, so that none is ignored."""
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "null": type(None)}
NOTES = {"$schema", "$defs", "title", "description"}


def has_type(value, name):
    return isinstance(value, TYPES[name]) and (name != "integer" or not isinstance(value, bool))


def check(value, schema, whole=None, where="$"):
    """Complaints, with the place of each in the value."""
    whole = whole or schema
    bad = []
    for keyword, rule in schema.items():
        if keyword in NOTES:
            continue
        if keyword == "$ref":
            assert rule.startswith("#/$defs/"), rule
            bad += check(value, whole["$defs"][rule.removeprefix("#/$defs/")], whole, where)
        elif keyword == "anyOf":
            each = [check(value, one, whole, where) for one in rule]
            bad += min(each, key=len) if all(each) else []
        elif keyword == "type":
            if not any(has_type(value, name) for name in ([rule] if isinstance(rule, str) else rule)):
                bad.append(f"{where} is not of type {rule}")
        elif keyword == "enum":
            bad += [] if value in rule else [f"{where} is {value!r}"]
        elif keyword == "minimum":
            bad += [] if not has_type(value, "integer") or value >= rule else [f"{where} is {value}"]
        elif keyword == "pattern":
            bad += [] if not isinstance(value, str) or re.search(rule, value) else [f"{where} is {value!r}"]
        elif keyword == "properties":
            for name in rule.keys() & (value.keys() if isinstance(value, dict) else ()):
                bad += check(value[name], rule[name], whole, f"{where}.{name}")
        elif keyword == "required":
            bad += [f"{where} has no {name}" for name in rule if isinstance(value, dict) and name not in value]
        elif keyword == "additionalProperties":
            assert rule is False
            bad += [f"{where} has {name}" for name in (value if isinstance(value, dict) else ()) if name not in schema["properties"]]
        elif keyword == "items":
            for position, item in enumerate(value if isinstance(value, list) else ()):
                bad += check(item, rule, whole, f"{where}[{position}]")
        else:
            raise ValueError(f"the schema has the keyword {keyword}")
    return bad
