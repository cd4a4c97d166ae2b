//! The bridge to one MCP server: an MCP client that lists the server's tools as its own and passes calls on, one request a call. It interprets nothing of what the
//! server says; texts, schemas and values travel as they came, within bounds. docs/mcp-servers.md says what it does in each case.

mod answer;
mod configuration;
mod connection;
mod exchange;
mod listing;
mod message;
mod parameter_headers;
mod subscription;

wit_bindgen::generate!({ world: "changing-tools", path: "../../wit" });

use exports::ambit::tool::changes::{self, News};
use exports::ambit::tool::untyped::{self, Answer, Failure, Page};

struct Bridge;

impl untyped::Guest for Bridge {
    fn list_tools(cursor: Option<String>) -> Result<Page, String> {
        listing::page(cursor).map_err(|fault| fault.to_string())
    }

    fn call_tool(name: String, arguments: String, input_schema: String) -> Result<Answer, Failure> {
        answer::call(&name, &arguments, &input_schema)
    }
}

impl changes::Guest for Bridge {
    fn watch() -> Result<News, String> {
        subscription::next().map_err(|fault| fault.to_string())
    }
}

export!(Bridge);
