use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// MCP 2026-07-28, "Custom headers from tool parameters": the extension of a property's schema that names a header.
const EXTENSION: &str = "x-mcp-header";

/// Integers that travel exactly in every implementation.
const SAFE: f64 = ((1_u64 << 53) - 1) as f64;

/// The arguments that travel in headers, and under which names. Along `properties` alone: tools whose schema asks for headers in any other way are not listed.
fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) -> Result<(), &'static str> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    for (key, property) in properties {
        path.push(key.clone());
        if let Some(name) = property.get(EXTENSION) {
            let name = name.as_str().filter(|name| is_token(name)).ok_or("a header's name is none")?;
            let kind = property.get("type").and_then(Value::as_str);
            if !matches!(kind, Some("string" | "integer" | "boolean")) {
                return Err("an argument that is no text, integer or boolean can't travel in a header");
            }
            found.push((path.clone(), name.into()));
        }
        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// RFC 9110, 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The headers that a call's arguments travel in as well.
pub fn for_call(arguments: &str, input_schema: &str) -> Result<Vec<(String, String)>, &'static str> {
    if !input_schema.contains(EXTENSION) {
        return Ok(Vec::new());
    }
    let schema: Value = serde_json::from_str(input_schema).map_err(|_| "the schema is no JSON that is read here")?;
    let arguments: Value = serde_json::from_str(arguments).map_err(|_| "the arguments are no JSON that is read here")?;
    let mut headers = Vec::new();
    let mut declared = Vec::new();
    collect(&schema, &mut Vec::new(), &mut declared)?;
    for (path, name) in declared {
        let value = path.iter().try_fold(&arguments, |value, key| value.get(key));
        let text = match value {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(value)) => value.to_string(),
            Some(Value::Number(number)) => match number.as_f64() {
                Some(integer) if integer.fract() == 0.0 && integer.abs() <= SAFE => (integer as i64).to_string(),
                _ => return Err("an integer for a header is beyond what is exact everywhere"),
            },
            Some(_) => return Err("an argument for a header is no single value"),
        };
        headers.push((format!("mcp-param-{}", name.to_ascii_lowercase()), header_value(&text)));
    }
    Ok(headers)
}

/// As it is, or in the protocol's base64 form where a header can't carry it so.
pub fn header_value(text: &str) -> String {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    let padded = text.trim_matches([' ', '\t']) != text || text.is_empty();
    let ambiguous = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !padded && !ambiguous { text.into() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}
