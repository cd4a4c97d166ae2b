//! An MCP server in front of an issue tracker: GitHub's API, or one that looks like it. It keeps nothing between requests, so that any instance answers any of them,
//! and speaks both the stateless protocol and the one that begins with `initialize`.

mod messages;
mod protocol;
mod tools;
mod tracker;

use messages::{Reply, Request, respond};
use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{IncomingRequest, Method, ResponseOutparam};

const PATH: &str = "/mcp";

struct IssuesServer;

impl Guest for IssuesServer {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        if path.split('?').next() != Some(PATH) {
            return respond(out, Reply::status(404));
        }
        match request.method() {
            Method::Post => match Request::read(&request) {
                Ok(request) => protocol::answer(&request, out),
                Err(status) => respond(out, Reply::status(status)),
            },
            // There is no session to listen to or to end.
            _ => respond(out, Reply::status(405)),
        }
    }
}

wasip2::http::proxy::export!(IssuesServer);
