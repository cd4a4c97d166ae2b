use std::cell::RefCell;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::configuration::Configuration;
use crate::exchange::{Fault, Incoming, Post, answer_to, delete, listen, post};
use crate::message::{Message, RpcError, asks};
use crate::parameter_headers::header_value;

/// The newest revision, which has no sessions.
pub const STATELESS: &str = "2026-07-28";

/// What is asked for of a server that has them; it may choose an older one that we know.
const WITH_SESSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const CLIENT: &str = r#"{"name":"ambit-bridge","version":"0.1.0"}"#;

/// JSON-RPC and MCP error codes that only a server which knows the stateless protocol uses.
const UNSUPPORTED_VERSION: i64 = -32022;
const HEADER_MISMATCH: i64 = -32020;

/// JSON-RPC error codes by which servers refuse a request for its session, where the status is that of a refusal: each library has its own.
const OF_NO_SESSION: [i64; 3] = [-32000, -32001, -32600];
const UNKNOWN_METHOD: i64 = -32601;

/// The server's requests that are answered during one of ours; more are left without an answer.
const MAX_ANSWERED: usize = 16;

/// How this server is spoken to, and what it said of itself when that was found out.
pub struct Connection {
    pub configuration: Configuration,
    pub era: Era,
    pub server: Option<String>,
    pub instructions: Option<String>,
    pub tells_changes: bool,
}

pub enum Era {
    Stateless,
    Session { version: String, id: Option<String> },
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Introduction {
    supported_versions: Vec<String>,
    protocol_version: Option<String>,
    capabilities: Capabilities,
    server_info: Option<Named>,
    instructions: Option<String>,
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Capabilities {
    tools: Option<ToolCapabilities>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ToolCapabilities {
    list_changed: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Supported {
    supported: Vec<String>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Connection>>> = const { RefCell::new(None) };
    static NEXT_ID: RefCell<u64> = const { RefCell::new(1) };
}

fn next_id() -> u64 {
    NEXT_ID.with_borrow_mut(|next| {
        *next += 1;
        *next - 1
    })
}

impl Connection {
    /// The one that this instance has, or a new one.
    pub fn current() -> Result<Rc<Self>, Fault> {
        match CURRENT.with_borrow(Clone::clone) {
            Some(connection) => Ok(connection),
            None => Self::renewed(),
        }
    }

    /// A new one, so that what the server says of itself is what it says now.
    pub fn renewed() -> Result<Rc<Self>, Fault> {
        if let Some(before) = CURRENT.take() {
            before.end();
        }
        let connection = Rc::new(Self::open(Configuration::read()?)?);
        CURRENT.set(Some(connection.clone()));
        Ok(connection)
    }

    /// Asks as the stateless protocol does; a server that does not know it is asked for a session.
    fn open(configuration: Configuration) -> Result<Self, Fault> {
        let probe = Connection { configuration, era: Era::Stateless, server: None, instructions: None, tells_changes: false };
        match probe.request("server/discover", "", &[]) {
            Ok(result) => {
                let said = introduction(&result)?;
                if said.supported_versions.iter().any(|version| version == STATELESS) {
                    let server = said.meta.server_info.and_then(|info| info.name);
                    return Ok(probe.introduced(Era::Stateless, server, said.instructions, said.capabilities));
                }
            }
            Err(Fault::Rpc(error)) if error.code == UNSUPPORTED_VERSION => {
                let supported = error.data.as_ref().and_then(|data| serde_json::from_str::<Supported>(data.get()).ok());
                let older = supported.is_none_or(|given| given.supported.iter().any(|version| WITH_SESSIONS.contains(&version.as_str())));
                if !older {
                    return Err(Fault::Rpc(error));
                }
            }
            Err(Fault::Rpc(error)) if error.code == HEADER_MISMATCH => return Err(Fault::Rpc(error)),
            // Older servers answer what they don't know in ways of their own.
            Err(Fault::Rpc(_) | Fault::Malformed(_) | Fault::Status(400 | 404..=422 | 500..=502)) => {}
            Err(fault) => return Err(fault),
        }
        probe.initialized()
    }

    fn introduced(self, era: Era, server: Option<String>, instructions: Option<String>, capabilities: Capabilities) -> Self {
        let tells_changes = capabilities.tools.is_some_and(|tools| tools.list_changed);
        Connection { era, server, instructions, tells_changes, ..self }
    }

    fn initialized(mut self) -> Result<Self, Fault> {
        let newest = WITH_SESSIONS[0];
        self.era = Era::Session { version: newest.into(), id: None };
        let params = format!(r#""protocolVersion":"{newest}","capabilities":{{}},"clientInfo":{CLIENT}"#);
        let mut incoming = self.send("initialize", &params, &[], next_id())?;
        let session = incoming.1.header("mcp-session-id").map(String::from);
        let result = self.result(&mut incoming)?;
        let said = introduction(&result)?;
        let version = said.protocol_version.unwrap_or_default();
        if !WITH_SESSIONS.contains(&version.as_str()) {
            return Err(Fault::Malformed("it chose a version of the protocol that is not known here"));
        }
        let era = Era::Session { version, id: session };
        let server = said.server_info.and_then(|info| info.name);
        let connection = self.introduced(era, server, said.instructions, said.capabilities);
        let told = connection.told(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        if told.status() >= 300 { Err(Fault::Status(told.status())) } else { Ok(connection) }
    }

    /// The result of one request, as JSON text. `params` are members of the parameters, without braces.
    pub fn request(&self, method: &str, params: &str, headers: &[(String, String)]) -> Result<Box<RawValue>, Fault> {
        let mut sent = self.send(method, params, headers, next_id())?;
        self.result(&mut sent)
    }

    fn result(&self, (id, incoming): &mut (u64, Incoming)) -> Result<Box<RawValue>, Fault> {
        let mut answered = 0;
        let resume = |last_event: &str| {
            let mut headers = self.headers();
            headers.push(("last-event-id".into(), last_event.into()));
            listen(&self.configuration, &headers)
        };
        let message = answer_to(incoming, *id, resume, |message| {
            if asks(message) && answered < MAX_ANSWERED {
                answered += 1;
                self.refuse(message);
            }
        })?;
        match message {
            Message { error: Some(error), .. } => Err(Fault::Rpc(RpcError { status: incoming.status(), ..error })),
            Message { result: Some(result), .. } => Ok(result),
            _ => Err(Fault::Malformed("it has neither a result nor an error")),
        }
    }

    /// Sends a request and gives its id and what comes of it.
    pub fn send(&self, method: &str, params: &str, headers: &[(String, String)], id: u64) -> Result<(u64, Incoming), Fault> {
        let mut own = self.headers();
        let mut members = params.to_string();
        if let Era::Stateless = self.era {
            own.push(("mcp-method".into(), method.into()));
            let comma = if params.is_empty() { "" } else { "," };
            members = format!(
                r#"{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{STATELESS}","io.modelcontextprotocol/clientInfo":{CLIENT},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#
            );
        }
        own.extend_from_slice(headers);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}}}}}"#);
        Ok((id, post(&self.configuration, &Post { headers: &own, body: &body })?))
    }

    /// Opens the stream of a request that is answered by what happens from now on.
    pub fn subscribe(&self, method: &str, params: &str) -> Result<(u64, Incoming), Fault> {
        self.send(method, params, &[], next_id())
    }

    /// Names the tool in a header, as the stateless protocol wants it.
    pub fn name_header(&self, name: &str) -> Vec<(String, String)> {
        match self.era {
            Era::Stateless => vec![("mcp-name".into(), header_value(name))],
            Era::Session { .. } => Vec::new(),
        }
    }

    pub fn headers(&self) -> Vec<(String, String)> {
        let (version, id) = match &self.era {
            Era::Stateless => (STATELESS, None),
            Era::Session { version, id } => (version.as_str(), id.as_ref()),
        };
        let version = ("mcp-protocol-version".to_string(), version.to_string());
        std::iter::once(version).chain(id.map(|id| ("mcp-session-id".to_string(), id.clone()))).collect()
    }

    /// A server with sessions may ask for what a person or a model should give: nobody here does, and it is told so rather than left waiting.
    pub fn refuse(&self, message: &Message) {
        let (Era::Session { .. }, Some(id), Some(method)) = (&self.era, &message.id, &message.method) else { return };
        let outcome = if method == "ping" { r#""result":{}"# } else { r#""error":{"code":-32601,"message":"not supported"}"# };
        // Whether it hears of it changes nothing for the request that is under way.
        let _ = self.told(&format!(r#"{{"jsonrpc":"2.0","id":{},{outcome}}}"#, id.get()));
    }

    fn told(&self, body: &str) -> Result<Incoming, Fault> {
        post(&self.configuration, &Post { headers: &self.headers(), body })
    }

    /// Whether the server says, before anything ran, that it can't be spoken to so any more. A session is gone by status 404, or 400 as some have it. A server that has
    /// become one of sessions, or of another version, refuses what comes without one by 400, or does not know it by 404.
    pub fn is_outdated(&self, fault: &Fault) -> bool {
        let (status, code) = match fault {
            Fault::Status(status) => (*status, None),
            Fault::Rpc(error) => (error.status, Some(error.code)),
            _ => return false,
        };
        match &self.era {
            Era::Session { .. } => status == 404 || (status == 400 && code.is_none_or(|code| OF_NO_SESSION.contains(&code))),
            Era::Stateless => match status {
                400 => code.is_none_or(|code| code == UNSUPPORTED_VERSION || OF_NO_SESSION.contains(&code)),
                404 => code.is_none_or(|code| code == UNKNOWN_METHOD || OF_NO_SESSION.contains(&code)),
                _ => false,
            },
        }
    }

    /// Whether a request that was refused by a server spoken to as `before` may be taken now.
    pub fn differs_from(&self, before: &Self) -> bool {
        !matches!((&self.era, &before.era), (Era::Stateless, Era::Stateless))
    }

    /// The next request finds out anew how the server is spoken to: it may be another by then.
    pub fn forget() {
        CURRENT.take();
    }

    fn end(&self) {
        if let Era::Session { id: Some(_), .. } = self.era {
            // A server that keeps it all the same ends it in its own time.
            let _ = delete(&self.configuration, &self.headers());
        }
    }
}

fn introduction(result: &RawValue) -> Result<Introduction, Fault> {
    serde_json::from_str(result.get()).map_err(|_| Fault::Malformed("what it says of itself is not in the protocol's form"))
}
