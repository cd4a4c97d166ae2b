use serde::Deserialize;
use serde_json::value::RawValue;

/// One JSON-RPC message of the server. What it holds stays text until somebody knows what it must be.
#[derive(Deserialize)]
pub struct Message {
    pub id: Option<Box<RawValue>>,
    pub method: Option<String>,
    pub params: Option<Box<RawValue>>,
    pub result: Option<Box<RawValue>>,
    pub error: Option<RpcError>,
}

#[derive(Deserialize)]
pub struct RpcError {
    pub code: i64,
    #[serde(default)]
    pub message: String,
    pub data: Option<Box<RawValue>>,
    /// The HTTP status that it came with.
    #[serde(skip)]
    pub status: u16,
}

/// A server compares headers with what the request says, and versions with those it knows, before it looks at the call itself.
const OF_PROTOCOL: [i64; 2] = [-32020, -32022];

impl RpcError {
    /// Whether the call was refused for who sent it or how, which is nothing that a model could do otherwise.
    pub fn is_refusal(&self) -> bool {
        OF_PROTOCOL.contains(&self.code) || matches!(self.status, 401 | 403 | 429 | 503)
    }
}

/// What is meant for the request that we sent under `id`.
pub fn answers(message: &Message, id: u64) -> bool {
    let named = message.id.as_ref().is_some_and(|given| given.get() == id.to_string());
    message.method.is_none() && (named || (message.id.is_none() && message.error.is_some()))
}

/// A request of the server to us, or one that it hopes somebody behind us answers.
pub fn asks(message: &Message) -> bool {
    message.method.is_some() && message.id.is_some()
}

/// As much of a text of the server's as an error of ours may hold.
pub fn excerpt(text: &str) -> &str {
    &text[..text.floor_char_boundary(500)]
}

pub fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
