use serde_json::{Value, json};
use wasip2::http::types::ResponseOutparam;

use crate::messages::{Events, Reply, Request, respond};
use crate::tools;

/// The revision without sessions, and those that begin with `initialize`, newest first.
const STATELESS: &str = "2026-07-28";
const WITH_HANDSHAKE: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

const INSTRUCTIONS: &str = "Issues of GitHub repositories, read only. Repositories are named as owner/name.";

/// How long what is listed here stays as it is: as long as this code.
const TTL_MS: u64 = 300_000;

const METHOD_UNKNOWN: i64 = -32601;
const PARAMS_INVALID: i64 = -32602;
const HEADER_MISMATCH: i64 = -32020;
const VERSION_UNSUPPORTED: i64 = -32022;

/// Answers one message over HTTP, as JSON or, for a tool that tells of its progress, as events.
pub fn answer(request: &Request, out: ResponseOutparam) {
    let message = &request.message;
    let (Some(method), id) = (message["method"].as_str(), message.get("id")) else { return respond(out, Reply::status(400)) };
    // Notifications, of which none changes anything here.
    let Some(id) = id else { return respond(out, Reply::status(202)) };
    let params = &message["params"];
    let is_stateless = params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string();
    if is_stateless && let Err((status, error)) = check_stateless(request, method, params) {
        return respond(out, Reply::json(status, failed(id, error)));
    }
    match method {
        "initialize" => respond(out, Reply::json(200, done(id, initialized(params)))),
        "ping" => respond(out, Reply::json(200, done(id, json!({})))),
        "server/discover" => respond(out, Reply::json(200, done(id, discovered()))),
        "tools/list" => {
            let mut result = json!({ "tools": tools::definitions() });
            if is_stateless {
                complete(&mut result);
                result["ttlMs"] = json!(TTL_MS);
                result["cacheScope"] = json!("public");
            }
            respond(out, Reply::json(200, done(id, result)))
        }
        "tools/call" => call(request, id, params, is_stateless, out),
        _ => {
            let status = if is_stateless { 404 } else { 200 };
            respond(out, Reply::json(status, failed(id, (METHOD_UNKNOWN, format!("there is no method {method}"), None))))
        }
    }
}

fn call(request: &Request, id: &Value, params: &Value, is_stateless: bool, out: ResponseOutparam) {
    let name = params["name"].as_str().unwrap_or_default();
    let finished = |result: Option<Value>| match result {
        Some(mut result) => {
            if is_stateless {
                complete(&mut result);
            }
            done(id, result)
        }
        None => failed(id, (PARAMS_INVALID, format!("there is no tool {name}"), None)),
    };
    let progress = &params["_meta"]["progressToken"];
    if progress.is_null() || !request.takes_events() {
        return respond(out, Reply::json(200, finished(tools::call(name, &params["arguments"], &mut |_, _| true))));
    }
    let Some(mut events) = Events::begin(out) else { return };
    let result = tools::call(name, &params["arguments"], &mut |done, text| {
        let params = json!({ "progressToken": progress, "progress": done, "message": text });
        events.send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }))
    });
    events.send(&finished(result));
    events.finish();
}

type Failed = (i64, String, Option<Value>);

/// The headers of the stateless protocol have to say what the body says.
fn check_stateless(request: &Request, method: &str, params: &Value) -> Result<(), (u16, Failed)> {
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str().unwrap_or_default();
    let mismatch = |what: &str| Err((400, (HEADER_MISMATCH, format!("the header {what} does not say what the body says"), None)));
    if request.header("mcp-protocol-version") != Some(version) {
        return mismatch("MCP-Protocol-Version");
    }
    if version != STATELESS {
        let supported = json!({ "supported": [STATELESS], "requested": version });
        return Err((400, (VERSION_UNSUPPORTED, "that version is not spoken here".into(), Some(supported))));
    }
    if request.header("mcp-method") != Some(method) {
        return mismatch("Mcp-Method");
    }
    if method == "tools/call" && request.header("mcp-name") != params["name"].as_str() {
        return mismatch("Mcp-Name");
    }
    Ok(())
}

fn discovered() -> Value {
    let mut result = json!({
        "supportedVersions": [STATELESS],
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
        "ttlMs": TTL_MS,
        "cacheScope": "public",
    });
    complete(&mut result);
    result
}

fn initialized(params: &Value) -> Value {
    let wanted = params["protocolVersion"].as_str().unwrap_or_default();
    let version = WITH_HANDSHAKE.iter().find(|known| **known == wanted).unwrap_or(&WITH_HANDSHAKE[0]);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": server(),
        "instructions": INSTRUCTIONS,
    })
}

fn server() -> Value {
    json!({ "name": "issues", "version": env!("CARGO_PKG_VERSION") })
}

fn complete(result: &mut Value) {
    result["resultType"] = json!("complete");
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": server() });
}

fn done(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn failed(id: &Value, (code, message, data): Failed) -> Value {
    let mut error = json!({ "code": code, "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
