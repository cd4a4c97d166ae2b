//! A blocking HTTP client over `wasi:http`, as small as the examples need: one request, its whole answer within a cap, errors in words.
//!
//! Whoever links it imports `wasi:http` and `wasi:io` and nothing else.

mod failure;
mod url;

pub use failure::Failure;
pub use url::Url;

use wasip2::http::outgoing_handler;
use wasip2::http::types::{Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

/// How much is asked of a stream at once.
const CHUNK: u64 = 64 * 1024;

pub struct Request<'a> {
    pub method: Method,
    pub url: &'a Url,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
    /// Bytes of the answer's body that are kept; the rest is not read.
    pub max_body: usize,
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
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .and_then(|(_, value)| std::str::from_utf8(value).ok())
    }
}

/// A GET without redirects.
pub fn get(url: &Url, headers: &[(&str, &str)], max_body: usize) -> Result<Response, Failure> {
    send(&Request {
        method: Method::Get,
        url,
        headers,
        body: &[],
        max_body,
    })
}

/// Sends one request and waits for its answer. A redirect is an answer like any other: following it is another request, judged anew.
pub fn send(request: &Request) -> Result<Response, Failure> {
    let future = {
        let outgoing = outgoing(request)?;
        let body = outgoing.body().map_err(|()| Failure::Unusable("the request has no body"))?;
        let future = outgoing_handler::handle(outgoing, None).map_err(|code| Failure::of(code, request.url))?;
        upload(body, request)?;
        future
    };
    future.subscribe().block();
    let incoming = match future.get() {
        Some(Ok(answer)) => answer.map_err(|code| Failure::of(code, request.url))?,
        Some(Err(())) | None => return Err(Failure::Unusable("the host gave no answer")),
    };
    received(&incoming, request)
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
                .map_err(|_| Failure::Broken("while sending"))?;
        }
    }
    OutgoingBody::finish(body, None).map_err(|code| Failure::of(code, request.url))
}

fn received(incoming: &IncomingResponse, request: &Request) -> Result<Response, Failure> {
    let headers = incoming.headers().entries();
    let consumed = incoming.consume().map_err(|()| Failure::Unusable("the answer's body is taken"))?;
    let stream = consumed.stream().map_err(|()| Failure::Unusable("the answer's body is taken"))?;
    let mut body = Vec::new();
    let truncated = loop {
        match stream.blocking_read(CHUNK) {
            Ok(chunk) => body.extend_from_slice(&chunk),
            Err(StreamError::Closed) => break false,
            Err(StreamError::LastOperationFailed(_)) => return Err(Failure::Broken("while receiving")),
        }
        if body.len() > request.max_body {
            body.truncate(request.max_body);
            break true;
        }
    };
    Ok(Response {
        status: incoming.status(),
        headers,
        body,
        truncated,
    })
}
