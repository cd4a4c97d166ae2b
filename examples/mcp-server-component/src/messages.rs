use serde_json::Value;
use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};
use wasip2::io::streams::{OutputStream, StreamError};

/// Larger than any request that makes sense.
const MAX_REQUEST: usize = 1 << 20;

const CHUNK: u64 = 64 * 1024;

/// One JSON-RPC message that came, and the headers of its request.
pub struct Request {
    headers: Vec<(String, Vec<u8>)>,
    pub message: Value,
}

impl Request {
    /// The status to answer with, where it is none.
    pub fn read(request: &IncomingRequest) -> Result<Self, u16> {
        let headers = request.headers().entries();
        let body = request.consume().map_err(|()| 500_u16)?;
        let stream = body.stream().map_err(|()| 500_u16)?;
        let mut text = Vec::new();
        loop {
            match stream.blocking_read(CHUNK) {
                Ok(chunk) => text.extend_from_slice(&chunk),
                Err(StreamError::Closed) => break,
                Err(StreamError::LastOperationFailed(_)) => return Err(400),
            }
            if text.len() > MAX_REQUEST {
                return Err(413);
            }
        }
        let message = serde_json::from_slice(&text).map_err(|_| 400_u16)?;
        Ok(Request { headers, message })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }

    pub fn takes_events(&self) -> bool {
        self.header("accept").is_some_and(|accept| accept.contains("text/event-stream"))
    }
}

/// A whole answer.
pub struct Reply {
    status: u16,
    body: Option<Value>,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Reply { status, body: None }
    }

    pub fn json(status: u16, body: Value) -> Self {
        Reply { status, body: Some(body) }
    }
}

pub fn respond(out: ResponseOutparam, reply: Reply) {
    let kind = reply.body.as_ref().map(|_| "application/json");
    let Some(mut body) = Body::begin(out, reply.status, kind) else { return };
    if let Some(value) = reply.body {
        let _ = body.write(value.to_string().as_bytes());
    }
    body.finish();
}

/// A stream of server-sent events, each of which goes out as it is sent.
pub struct Events(Body);

impl Events {
    pub fn begin(out: ResponseOutparam) -> Option<Self> {
        Body::begin(out, 200, Some("text/event-stream")).map(Events)
    }

    /// False once nobody reads any more.
    pub fn send(&mut self, message: &Value) -> bool {
        self.0.write(format!("event: message\ndata: {message}\n\n").as_bytes()).is_ok()
    }

    pub fn finish(self) {
        self.0.finish();
    }
}

struct Body {
    // In the order in which they have to be dropped.
    stream: OutputStream,
    body: OutgoingBody,
}

impl Body {
    fn begin(out: ResponseOutparam, status: u16, kind: Option<&str>) -> Option<Self> {
        let headers: Vec<(String, Vec<u8>)> = kind.map(|kind| ("content-type".into(), kind.into())).into_iter().collect();
        let response = OutgoingResponse::new(Fields::from_list(&headers).ok()?);
        response.set_status_code(status).ok()?;
        let body = response.body().ok()?;
        let stream = body.write().ok()?;
        ResponseOutparam::set(out, Ok(response));
        Some(Body { stream, body })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        for part in bytes.chunks(4096) {
            self.stream.blocking_write_and_flush(part)?;
        }
        Ok(())
    }

    fn finish(self) {
        drop(self.stream);
        let _ = OutgoingBody::finish(self.body, None);
    }
}
