//! A blocking HTTP client over `wasi:http`, as small as our components need: one request, its whole answer within a cap or piece by piece, errors in words.
//!
//! Whoever links it imports `wasi:http` and `wasi:io` and nothing else.

mod failure;
mod url;

pub use failure::Failure;
pub use url::Url;

use wasip2::http::outgoing_handler;
use wasip2::http::types::{Fields, IncomingBody, IncomingResponse, OutgoingBody, OutgoingRequest, Scheme};
use wasip2::io::streams::{InputStream, StreamError};

pub use wasip2::http::types::Method;

/// How much is asked of a stream at once.
const CHUNK: u64 = 64 * 1024;

pub struct Request<'a> {
    pub method: Method,
    pub url: &'a Url,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    /// Whether the body went on beyond the cap.
    pub truncated: bool,
}

impl Response {
    /// The first header of that name, whatever its case, where it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        first_header(&self.headers, name)
    }
}

/// An answer whose body is still to come. Dropping it ends the exchange.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    // In the order in which they have to be dropped.
    stream: InputStream,
    _body: IncomingBody,
    _response: IncomingResponse,
}

impl Answer {
    /// As `Response::header`.
    pub fn header(&self, name: &str) -> Option<&str> {
        first_header(&self.headers, name)
    }

    /// Waits for the next piece of the body; none at its end.
    pub fn read(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        match self.stream.blocking_read(CHUNK) {
            Ok(chunk) => Ok(Some(chunk)),
            Err(StreamError::Closed) => Ok(None),
            Err(StreamError::LastOperationFailed(_)) => Err(Failure::Lost("the connection broke while receiving".into())),
        }
    }
}

fn first_header<'a>(headers: &'a [(String, Vec<u8>)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .and_then(|(_, value)| std::str::from_utf8(value).ok())
}

/// A GET without redirects; `max_body` as in `send`.
pub fn get(url: &Url, headers: &[(&str, &str)], max_body: usize) -> Result<Response, Failure> {
    let request = Request {
        method: Method::Get,
        url,
        headers,
        body: &[],
    };
    send(&request, max_body)
}

/// Sends one request and waits for its answer, of which `max_body` bytes are kept and no more are read.
pub fn send(request: &Request, max_body: usize) -> Result<Response, Failure> {
    let mut answer = open(request)?;
    let mut body = Vec::new();
    let mut truncated = false;
    while let Some(chunk) = answer.read()? {
        body.extend_from_slice(&chunk);
        if body.len() > max_body {
            body.truncate(max_body);
            truncated = true;
            break;
        }
    }
    Ok(Response {
        status: answer.status,
        headers: std::mem::take(&mut answer.headers),
        body,
        truncated,
    })
}

/// Sends one request and waits for the head of its answer. A redirect is an answer like any other: following it is another request, judged anew.
pub fn open(request: &Request) -> Result<Answer, Failure> {
    let outgoing = outgoing(request)?;
    let body = outgoing.body().map_err(|()| Failure::Unusable("the request has no body"))?;
    let future = outgoing_handler::handle(outgoing, None).map_err(|code| Failure::of(code, request.url))?;
    // Where sending fails the answer tells why: a connection that was never there, or a server that has heard enough.
    let uploaded = upload(body, request);
    future.subscribe().block();
    let response = match future.get() {
        Some(Ok(answer)) => answer.map_err(|code| Failure::of(code, request.url))?,
        Some(Err(())) | None => return Err(uploaded.err().unwrap_or(Failure::Unusable("the host gave no answer"))),
    };
    let body = response.consume().map_err(|()| Failure::Unusable("the answer's body is taken"))?;
    let stream = body.stream().map_err(|()| Failure::Unusable("the answer's body is taken"))?;
    Ok(Answer {
        status: response.status(),
        headers: response.headers().entries(),
        stream,
        _body: body,
        _response: response,
    })
}
fn outgoing(request: &Request) -> Result<OutgoingRequest, Failure> {
    let headers: Vec<(String, Vec<u8>)> = request
        .headers
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect();
    let fields = Fields::from_list(&headers).map_err(|error| Failure::Header(format!("{error:?}")))?;
    let outgoing = OutgoingRequest::new(fields);
    let scheme = if request.url.secure { Scheme::Https } else { Scheme::Http };
    let unusable = |()| Failure::Url(request.url.to_string());
    outgoing.set_method(&request.method).map_err(unusable)?;
    outgoing.set_scheme(Some(&scheme)).map_err(unusable)?;
    outgoing.set_authority(Some(&request.url.authority)).map_err(unusable)?;
    outgoing.set_path_with_query(Some(&request.url.path)).map_err(unusable)?;
    Ok(outgoing)
}

fn upload(body: OutgoingBody, request: &Request) -> Result<(), Failure> {
    if !request.body.is_empty() {
        let stream = body.write().map_err(|()| Failure::Unusable("the request's body is taken"))?;
        // What one blocking write takes at most, by its contract.
        for chunk in request.body.chunks(4096) {
            stream
                .blocking_write_and_flush(chunk)
                .map_err(|_| Failure::Lost("the connection broke while sending".into()))?;
        }
    }
    OutgoingBody::finish(body, None).map_err(|code| Failure::of(code, request.url))
}
