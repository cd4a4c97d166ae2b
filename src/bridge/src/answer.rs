use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::connection::Connection;
use crate::exchange::Fault;
use crate::exports::ambit::tool::untyped::{Answer, BlobResource, Content, Failure, Media, ResourceLink, TextResource};
use crate::message::{excerpt, json_text};
use crate::parameter_headers;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    #[serde(default)]
    content: Vec<Block>,
    structured_content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
    result_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    r#type: String,
    text: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    description: Option<String>,
    resource: Option<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

/// Passes a call on, in one request. Where the server refuses to be spoken to as before, nothing ran, and it is asked anew how, and called again, once.
pub fn call(name: &str, arguments: &str, input_schema: &str) -> Result<Answer, Failure> {
    let mut connection = Connection::current().map_err(nothing_ran)?;
    let mut result = sent(&connection, name, arguments, input_schema)?;
    if result.as_ref().is_err_and(|fault| connection.is_outdated(fault)) {
        Connection::forget();
        let renewed = Connection::renewed().map_err(nothing_ran)?;
        if renewed.differs_from(&connection) {
            connection = renewed;
            result = sent(&connection, name, arguments, input_schema)?;
        }
    }
    if result.as_ref().is_err_and(|fault| !matches!(fault, Fault::Rpc(error) if error.status == 200)) {
        Connection::forget();
    }
    match result {
        Ok(result) => answered(&result),
        Err(fault) if connection.is_outdated(&fault) => Err(nothing_ran(fault)),
        Err(Fault::Rpc(error)) if error.is_refusal() => Err(nothing_ran(Fault::Rpc(error))),
        Err(Fault::Rpc(error)) => Ok(error_text(excerpt(&error.message))),
        Err(fault @ (Fault::Status(300..=499 | 503) | Fault::NotSent(_) | Fault::Misconfigured(_))) => Err(nothing_ran(fault)),
        Err(fault) => Err(Failure::InDoubt(fault.to_string())),
    }
}

fn sent(connection: &Connection, name: &str, arguments: &str, input_schema: &str) -> Result<Result<Box<RawValue>, Fault>, Failure> {
    let mut headers = connection.name_header(name);
    if !headers.is_empty() {
        headers.extend(parameter_headers::for_call(arguments, input_schema).map_err(|why| Failure::Unavailable(why.into()))?);
    }
    let params = format!(r#""name":{},"arguments":{arguments}"#, json_text(name));
    Ok(connection.request("tools/call", &params, &headers))
}

/// Before the call itself was sent, or where it was refused as it came.
fn nothing_ran(fault: Fault) -> Failure {
    Failure::Unavailable(fault.to_string())
}

fn answered(result: &RawValue) -> Result<Answer, Failure> {
    let malformed = || Failure::InDoubt("the server's result is not in the protocol's form".into());
    let outcome: Outcome = serde_json::from_str(result.get()).map_err(|_| malformed())?;
    if outcome.result_type.as_deref().is_some_and(|kind| kind != "complete") {
        return Ok(error_text("The server asks for more than the arguments, which nobody here can give. The call did not come to its end."));
    }
    let content = outcome.content.into_iter().map(content).collect::<Option<Vec<_>>>().ok_or_else(malformed)?;
    Ok(Answer { content, structured: outcome.structured_content.map(|value| value.get().into()), is_error: outcome.is_error })
}

/// None where a block of a known type is not what it should be.
fn content(block: Block) -> Option<Content> {
    Some(match block.r#type.as_str() {
        "text" => Content::Text(block.text?),
        "image" => Content::Image(media(block.data?, block.mime_type?)?),
        "audio" => Content::Audio(media(block.data?, block.mime_type?)?),
        "resource_link" => Content::ResourceLink(ResourceLink {
            uri: block.uri?,
            name: block.name?,
            description: block.description,
            mime_type: block.mime_type,
        }),
        "resource" => resource(block.resource?)?,
        _ => Content::Text("[A part of the answer is of a kind that is not known here.]".into()),
    })
}

fn resource(Resource { uri, mime_type, text, blob }: Resource) -> Option<Content> {
    match (text, blob) {
        (Some(text), _) => Some(Content::TextResource(TextResource { uri, mime_type, text })),
        (None, Some(blob)) => Some(Content::BlobResource(BlobResource { uri, mime_type, blob: STANDARD.decode(blob).ok()? })),
        (None, None) => None,
    }
}

fn media(data: String, mime_type: String) -> Option<Media> {
    Some(Media { data: STANDARD.decode(data).ok()?, mime_type })
}

fn error_text(text: &str) -> Answer {
    Answer { content: vec![Content::Text(text.into())], structured: None, is_error: true }
}
