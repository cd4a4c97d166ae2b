use serde::Deserialize;
use serde_json::value::RawValue;

use crate::connection::Connection;
use crate::exchange::Fault;
use crate::exports::ambit::tool::untyped::{Definition, Page};
use crate::message::json_text;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    tools: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
    ttl_ms: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Box<RawValue>>,
    output_schema: Option<Box<RawValue>>,
    annotations: Option<Box<RawValue>>,
}

/// A page of the server's list. With the first one the server is asked anew what it says of itself.
pub fn page(cursor: Option<String>) -> Result<Page, Fault> {
    let connection = if cursor.is_some() { Connection::current()? } else { Connection::renewed()? };
    let params = cursor.as_ref().map_or(String::new(), |cursor| format!(r#""cursor":{}"#, json_text(cursor)));
    let result = connection.request("tools/list", &params, &[])?;
    let listed: Listed = serde_json::from_str(result.get()).map_err(|_| Fault::Malformed("its list of tools is not in the protocol's form"))?;
    let is_first = cursor.is_none();
    let milliseconds = listed.ttl_ms.filter(|ttl| *ttl >= 0.0).map(|ttl| ttl as u32);
    Ok(Page {
        server: connection.server.clone().filter(|_| is_first),
        instructions: connection.instructions.clone().filter(|_| is_first),
        ttl_ms: milliseconds.filter(|_| is_first),
        tools: listed.tools.iter().map(|tool| definition(tool)).collect(),
        next_cursor: listed.next_cursor,
    })
}

/// What can't be read becomes a definition without a name, which the host does not offer and tells of.
fn definition(tool: &RawValue) -> Definition {
    let Ok(tool) = serde_json::from_str::<Tool>(tool.get()) else { return unnamed() };
    Definition {
        name: tool.name,
        title: tool.title,
        description: tool.description,
        input_schema: tool.input_schema.map_or("{}".into(), text),
        output_schema: tool.output_schema.map(text),
        annotations: tool.annotations.map(text),
    }
}

fn unnamed() -> Definition {
    Definition { name: String::new(), title: None, description: None, input_schema: "{}".into(), output_schema: None, annotations: None }
}

fn text(raw: Box<RawValue>) -> String {
    raw.get().into()
}
