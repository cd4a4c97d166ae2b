use std::fmt;

use http_client::{Answer, Failure, Method, Request};
use wasip2::clocks::monotonic_clock::subscribe_duration;

use crate::configuration::Configuration;
use crate::message::{Message, RpcError, answers, excerpt};

/// Bytes of one answer: more than any list or result may have at the host.
const MAX_ANSWER: usize = 16 << 20;

/// Messages before the answer that a stream may bring.
const MAX_MESSAGES: usize = 10_000;

/// How often a stream that ended before the answer is taken up again, and how long is waited before where the server does not say.
const MAX_RESUMED: usize = 10;
const RETRY_MS: u64 = 1000;
const MAX_RETRY_MS: u64 = 30_000;
const MAX_EVENT_ID: usize = 1024;

/// Why there is no result.
pub enum Fault {
    Misconfigured(String),
    /// The server has heard nothing.
    NotSent(String),
    /// It may have heard, and what it made of it is not known.
    Lost(String),
    /// An answer without a message of the protocol.
    Status(u16),
    Malformed(&'static str),
    Rpc(RpcError),
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lost(why) => Fault::Lost(why),
            other => Fault::NotSent(other.to_string()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Misconfigured(why) | Fault::NotSent(why) | Fault::Lost(why) => out.write_str(why),
            Fault::Status(401 | 403) => write!(out, "the server does not take the credentials that it was given"),
            Fault::Status(status @ 300..=399) => write!(out, "the server redirects (status {status}), which is not followed: its address is what was granted"),
            Fault::Status(status) => write!(out, "the server answered with status {status} and no message of the protocol"),
            Fault::Malformed(what) => write!(out, "the server's answer can't be read: {what}"),
            Fault::Rpc(error) => write!(out, "the server answered with error {}: {}", error.code, excerpt(&error.message)),
        }
    }
}

/// The messages of one answer, as they come: one in a JSON body, many in an event stream.
pub struct Incoming {
    answer: Answer,
    is_stream: bool,
    held: Vec<u8>,
    /// How much of `held` has no end of a line in it.
    looked_at: usize,
    data: String,
    is_message: bool,
    last_event: Option<String>,
    retry_ms: u64,
    received: usize,
    ended: bool,
}

impl Incoming {
    pub fn status(&self) -> u16 {
        self.answer.status
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.answer.header(name)
    }

    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// The next message; none at the end. What is no JSON-RPC message is an error in a body, and passed over in a stream's events of other kinds.
    pub fn next(&mut self) -> Result<Option<Message>, Fault> {
        if self.is_stream { self.next_event() } else { self.whole() }
    }

    /// A stream that is listened to without end may bring any number of bytes in all.
    pub fn forget_received(&mut self) {
        self.received = 0;
    }

    fn whole(&mut self) -> Result<Option<Message>, Fault> {
        while self.more()? {}
        if self.held.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let body = std::mem::take(&mut self.held);
        parsed(&body).map(Some)
    }

    /// The next event that holds a message (HTML, "Server-sent events"). One without data only says where its stream may be taken up again.
    fn next_event(&mut self) -> Result<Option<Message>, Fault> {
        loop {
            while let Some(line) = self.line() {
                if !line.is_empty() {
                    self.take_field(&line)?;
                    continue;
                }
                let data = std::mem::take(&mut self.data);
                let is_message = std::mem::replace(&mut self.is_message, true);
                if is_message && !data.trim_ascii().is_empty() {
                    return parsed(data.as_bytes()).map(Some);
                }
            }
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    /// A line of the stream that is complete; lines end in LF, CR LF or CR.
    fn line(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.held[self.looked_at..].iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.looked_at = self.held.len();
            return None;
        };
        let end = self.looked_at + end;
        let is_cr = self.held[end] == b'\r';
        // Whether a LF belongs to this CR is known only with the next byte.
        if is_cr && end + 1 == self.held.len() && !self.ended {
            self.looked_at = end;
            return None;
        }
        let after = if is_cr && self.held.get(end + 1) == Some(&b'\n') { end + 2 } else { end + 1 };
        let line = self.held[..end].to_vec();
        self.held.drain(..after);
        self.looked_at = 0;
        Some(line)
    }

    fn take_field(&mut self, line: &[u8]) -> Result<(), Fault> {
        let line = std::str::from_utf8(line).map_err(|_| Fault::Malformed("an event is not UTF-8"))?;
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field.trim_start_matches('\u{feff}') {
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "event" => self.is_message = value.is_empty() || value == "message",
            "id" => self.last_event = Some(value.into()).filter(|id: &String| !id.is_empty() && id.len() <= MAX_EVENT_ID),
            "retry" => self.retry_ms = value.parse().unwrap_or(self.retry_ms),
            _ => {}
        }
        Ok(())
    }

    fn more(&mut self) -> Result<bool, Fault> {
        if self.ended {
            return Ok(false);
        }
        match self.answer.read()? {
            Some(chunk) => {
                self.received += chunk.len();
                if self.received > MAX_ANSWER {
                    return Err(Fault::Malformed("it is too large"));
                }
                self.held.extend_from_slice(&chunk);
                Ok(true)
            }
            None => {
                self.ended = true;
                Ok(false)
            }
        }
    }
}

fn parsed(body: &[u8]) -> Result<Message, Fault> {
    serde_json::from_slice(body).map_err(|_| Fault::Malformed("it is no JSON-RPC message"))
}

/// What a request holds beside the configured headers.
pub struct Post<'a> {
    pub headers: &'a [(String, String)],
    pub body: &'a str,
}

pub fn post(to: &Configuration, sent: &Post) -> Result<Incoming, Fault> {
    let fixed = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    open(to, Method::Post, &fixed, sent.headers, sent.body)
}

pub fn listen(to: &Configuration, headers: &[(String, String)]) -> Result<Incoming, Fault> {
    open(to, Method::Get, &[("accept", "text/event-stream")], headers, "")
}

pub fn delete(to: &Configuration, headers: &[(String, String)]) -> Result<Incoming, Fault> {
    open(to, Method::Delete, &[], headers, "")
}

fn open(to: &Configuration, method: Method, fixed: &[(&str, &str)], own: &[(String, String)], body: &str) -> Result<Incoming, Fault> {
    let length = body.len().to_string();
    let mut headers = vec![("user-agent", "ambit-bridge/0.1")];
    if !body.is_empty() {
        headers.push(("content-length", &length));
    }
    headers.extend(fixed);
    headers.extend(own.iter().chain(&to.headers).map(|(name, value)| (name.as_str(), value.as_str())));
    let answer = http_client::open(&Request { method, url: &to.url, headers: &headers, body: body.as_bytes() })?;
    let media_type = answer.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is_stream = media_type.eq_ignore_ascii_case("text/event-stream");
    Ok(Incoming { answer, is_stream, held: Vec::new(), looked_at: 0, data: String::new(), is_message: true, last_event: None, retry_ms: RETRY_MS, received: 0, ended: false })
}

/// The message that answers request `id`. `aside` sees what comes before it. A stream that ends before is taken up again where the server has said how: it may end one
/// while it still works (MCP 2025-11-25, "Resumability and redelivery").
pub fn answer_to(
    incoming: &mut Incoming,
    id: u64,
    resume: impl Fn(&str) -> Result<Incoming, Fault>,
    mut aside: impl FnMut(&Message),
) -> Result<Message, Fault> {
    let mut resumed = 0;
    for _ in 0..MAX_MESSAGES {
        let status = incoming.status();
        let message = match incoming.next() {
            // An error's body is often a page for people.
            Err(Fault::Malformed(_)) if status >= 300 => return Err(Fault::Status(status)),
            Err(Fault::Lost(_)) if incoming.last_event.is_some() => None,
            other => other?,
        };
        match (message, incoming.last_event.take()) {
            (Some(message), _) if answers(&message, id) => return Ok(message),
            (Some(message), last_event) => {
                incoming.last_event = last_event;
                aside(&message);
            }
            (None, Some(last_event)) if resumed < MAX_RESUMED => {
                resumed += 1;
                let retry_ms = incoming.retry_ms;
                subscribe_duration(retry_ms.min(MAX_RETRY_MS) * 1_000_000).block();
                // The request was taken: whatever is wrong with the stream now, it may have run.
                *incoming = resume(&last_event).map_err(|fault| Fault::Lost(format!("the server's answer is not to be had any more: {fault}")))?;
                if incoming.status() != 200 {
                    return Err(Fault::Lost(format!("the server's answer is not to be had any more: it answered with status {}", incoming.status())));
                }
                incoming.retry_ms = retry_ms;
            }
            _ if status == 200 => return Err(Fault::Lost("the server's answer ended before it came to the result".into())),
            _ => return Err(Fault::Status(status)),
        }
    }
    Err(Fault::Lost("the server says too much before it comes to the result".into()))
}
