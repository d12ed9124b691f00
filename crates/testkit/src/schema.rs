//! Checks JSON against the schemas in `docs/schemas`, as far as those go: not a validator for any schema.

use serde_json::Value;

/// Says where a value differs from its schema. A property that the schema doesn't name is a difference too.
pub fn check(schema: &Value, value: &Value) -> Result<(), String> {
    whole(schema, schema, value, "")
}

fn whole(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let mut names = value.as_object().into_iter().flatten().map(|(name, _)| name);
    if let Some(name) = names.find(|name| !is_named(root, schema, name)) {
        return Err(format!("`{path}/{name}` is not in the schema"));
    }
    part(root, schema, value, path)
}

/// A part of a schema doesn't know which properties the others name.
fn part(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let differs = |why: &str| Err(format!("at `{path}`: {why}: {value}"));
    if let Some(target) = referred(root, schema) {
        part(root, target, value, path)?;
    }
    let fits = |schema: &&Value| part(root, schema, value, path).is_ok();
    for other in list(schema, "allOf") {
        part(root, other, value, path)?;
    }
    let choices: Vec<&Value> = list(schema, "anyOf").chain(list(schema, "oneOf")).collect();
    if !choices.is_empty() && !choices.iter().any(fits) {
        return differs("it is none of the choices");
    }
    let mut types = schema["type"].as_array().map_or(std::slice::from_ref(&schema["type"]), Vec::as_slice).iter();
    if !schema["type"].is_null() && !types.any(|kind| is_of(value, kind.as_str().unwrap_or_default())) {
        return differs(&format!("it is not of type {}", schema["type"]));
    }
    if schema["enum"].as_array().is_some_and(|known| !known.contains(value)) {
        return differs("it is not in the list");
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return differs("it is another value");
    }
    for (index, element) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(items) = schema.get("items") {
            whole(root, items, element, &format!("{path}/{index}"))?;
        }
    }
    let Some(object) = value.as_object() else { return Ok(()) };
    for name in list(schema, "required").filter_map(Value::as_str) {
        if !object.contains_key(name) {
            return differs(&format!("`{name}` is missing"));
        }
    }
    for (name, member) in object {
        if let Some(own) = schema["properties"].get(name) {
            whole(root, own, member, &format!("{path}/{name}"))?;
        }
    }
    Ok(())
}

/// Whether a schema or one that it is made of names a property, or has no list of them.
fn is_named(root: &Value, schema: &Value, name: &str) -> bool {
    let parts: Vec<&Value> = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| list(schema, key)).collect();
    let is_open = schema["properties"].is_null() && parts.is_empty() && schema["$ref"].is_null();
    let is_map = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
    is_open
        || is_map
        || schema["properties"].get(name).is_some()
        || referred(root, schema).is_some_and(|target| is_named(root, target, name))
        || parts.into_iter().any(|part| is_named(root, part, name))
}

fn referred<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    let name = schema["$ref"].as_str()?.strip_prefix("#/$defs/")?;
    root["$defs"].get(name)
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema[key].as_array().into_iter().flatten()
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_found() {
        let schema = json!({
            "type": "object",
            "properties": { "id": { "type": "string" }, "inner": { "$ref": "#/$defs/Inner" } },
            "required": ["id"],
            "anyOf": [
                { "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] },
                { "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"] }
            ],
            "$defs": { "Inner": { "type": "object", "properties": { "kind": { "enum": ["a", "b"] } } } }
        });
        let is_valid = |value: Value| check(&schema, &value).is_ok();
        assert!(is_valid(json!({ "id": "x", "text": "y" })));
        assert!(is_valid(json!({ "id": "x", "count": 1, "inner": { "kind": "a" } })));
        assert!(!is_valid(json!({ "text": "y" })));
        assert!(!is_valid(json!({ "id": 1, "text": "y" })));
        assert!(!is_valid(json!({ "id": "x" })));
        assert!(!is_valid(json!({ "id": "x", "text": "y", "more": 1 })));
        assert!(!is_valid(json!({ "id": "x", "text": "y", "inner": { "kind": "c" } })));
    }
}
