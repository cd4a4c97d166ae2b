use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tracker::Tracker;

/// Told of each step; false where nobody listens any more, and then there is no use in going on.
pub type Progress<'a> = &'a mut dyn FnMut(usize, &str) -> bool;

/// Pages that are counted.
const MAX_PAGES: usize = 10;
const PAGE: usize = 100;

const REPO: &str = "The repository, as owner/name.";

/// What a client is told of the tools. The order is always the same.
pub fn definitions() -> Value {
    let read_only = json!({ "readOnlyHint": true, "openWorldHint": true });
    let issue = json!({
        "type": "object",
        "properties": { "number": { "type": "integer" }, "title": { "type": "string" }, "state": { "type": "string" } },
        "required": ["number", "title", "state"],
        "additionalProperties": false,
    });
    json!([
        {
            "name": "list_issues",
            "description": "List the open issues of a repository, the newest first, at most 30.",
            "inputSchema": {
                "type": "object",
                "properties": { "repo": { "type": "string", "description": REPO } },
                "required": ["repo"],
                "additionalProperties": false,
            },
            "outputSchema": {
                "type": "object",
                "properties": { "issues": { "type": "array", "items": issue } },
                "required": ["issues"],
                "additionalProperties": false,
            },
            "annotations": read_only,
        },
        {
            "name": "get_issue",
            "description": "Read one issue of a repository: its title and its text.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "repo": { "type": "string", "description": REPO },
                    "number": { "type": "integer", "minimum": 1, "description": "The issue's number." },
                },
                "required": ["repo", "number"],
                "additionalProperties": false,
            },
            "annotations": read_only,
        },
        {
            "name": "count_issues",
            "description": "Count the open issues of a repository, up to 1,000. Tells of each page on the way.",
            "inputSchema": {
                "type": "object",
                "properties": { "repo": { "type": "string", "description": REPO } },
                "required": ["repo"],
                "additionalProperties": false,
            },
            "annotations": read_only,
        },
    ])
}

#[derive(Deserialize)]
struct OfRepository {
    repo: String,
}

#[derive(Deserialize)]
struct OfIssue {
    repo: String,
    number: u64,
}

#[derive(Deserialize)]
struct Issue {
    number: u64,
    title: String,
    state: String,
    body: Option<String>,
    pull_request: Option<Value>,
}

/// A result of `tools/call`; none where there is no such tool. What goes wrong within a tool is a result that says so.
pub fn call(name: &str, arguments: &Value, progress: Progress) -> Option<Value> {
    let outcome = match name {
        "list_issues" => list_issues(arguments),
        "get_issue" => get_issue(arguments),
        "count_issues" => count_issues(arguments, progress),
        _ => return None,
    };
    Some(outcome.unwrap_or_else(|reason| json!({ "content": [{ "type": "text", "text": reason }], "isError": true })))
}

fn list_issues(arguments: &Value) -> Result<Value, String> {
    let OfRepository { repo } = read(arguments)?;
    let issues: Vec<Value> = page(&repo, 1, 30)?
        .into_iter()
        .map(|issue| json!({ "number": issue.number, "title": issue.title, "state": issue.state }))
        .collect();
    let structured = json!({ "issues": issues });
    Ok(json!({ "content": [{ "type": "text", "text": structured.to_string() }], "structuredContent": structured }))
}

fn get_issue(arguments: &Value) -> Result<Value, String> {
    let OfIssue { repo, number } = read(arguments)?;
    let issue: Issue = Tracker::from_environment()?.get(&repo, &format!("/issues/{number}"))?;
    Ok(text(format!("#{} {} ({})\n\n{}", issue.number, issue.title, issue.state, issue.body.unwrap_or_default())))
}

fn count_issues(arguments: &Value, progress: Progress) -> Result<Value, String> {
    let OfRepository { repo } = read(arguments)?;
    let mut count = 0;
    for at in 1..=MAX_PAGES {
        let issues: Vec<Issue> = Tracker::from_environment()?.get(&repo, &format!("/issues?state=open&per_page={PAGE}&page={at}"))?;
        let is_last = issues.len() < PAGE;
        count += issues.iter().filter(|issue| issue.pull_request.is_none()).count();
        if is_last {
            return Ok(text(format!("{count} open issues")));
        }
        if !progress(at, &format!("{count} so far")) {
            return Err("nobody waits for the count any more".into());
        }
    }
    Ok(text(format!("at least {count} open issues")))
}

fn page(repo: &str, at: usize, size: usize) -> Result<Vec<Issue>, String> {
    let issues: Vec<Issue> = Tracker::from_environment()?.get(repo, &format!("/issues?state=open&per_page={size}&page={at}"))?;
    // Pull requests are issues to GitHub.
    Ok(issues.into_iter().filter(|issue| issue.pull_request.is_none()).collect())
}

fn read<T: DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| format!("the arguments are not as the tool takes them: {error}"))
}

fn text(text: String) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}
