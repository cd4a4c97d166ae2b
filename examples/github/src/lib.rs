//! A toolbox over GitHub's REST API: what shares one host and is always approved together.

mod api;
mod model;
mod repository;

wit_bindgen::generate!({ world: "github", path: "wit" });

use api::Api;
use exports::ambit::github::repositories::{
    Error, FileText, GetIssueArgs, GetPullArgs, Guest, Issue, IssueDetail, IssueState, ListIssuesArgs, Pull, ReadFileArgs,
};
use repository::{Repository, encoded, encoded_path};

/// Bytes of a file that are returned.
const MAX_FILE: usize = 128 * 1024;

struct Github;

impl Guest for Github {
    fn list_issues(args: ListIssuesArgs) -> Result<Vec<Issue>, Error> {
        let repository = Repository::parse(&args.repo)?;
        let state = match args.state {
            IssueState::Open => "open",
            IssueState::Closed => "closed",
        };
        let page = args.page.unwrap_or(1).max(1);
        let labels: Vec<String> = args.labels.unwrap_or_default().iter().map(|label| encoded(label)).collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("&labels={}", labels.join(","))
        };
        let issues: Vec<model::Issue> =
            Api::from_environment()?.json(&format!("/repos/{repository}/issues?state={state}&per_page=30&page={page}{labels}"))?;
        Ok(issues
            .into_iter()
            .filter(|issue| issue.pull_request.is_none())
            .map(model::Issue::listed)
            .collect())
    }

    fn get_issue(args: GetIssueArgs) -> Result<IssueDetail, Error> {
        let repository = Repository::parse(&args.repo)?;
        let api = Api::from_environment()?;
        let path = format!("/repos/{repository}/issues/{}", args.number);
        let issue: model::Issue = api.json(&path)?;
        let comments: Vec<model::Comment> = if issue.comments == 0 {
            Vec::new()
        } else {
            api.json(&format!("{path}/comments?per_page=30"))?
        };
        Ok(issue.detailed(comments))
    }

    fn get_pull(args: GetPullArgs) -> Result<Pull, Error> {
        let repository = Repository::parse(&args.repo)?;
        let api = Api::from_environment()?;
        let path = format!("/repos/{repository}/pulls/{}", args.number);
        let pull: model::Pull = api.json(&path)?;
        let files: Vec<model::ChangedFile> = api.json(&format!("{path}/files?per_page=100"))?;
        Ok(pull.detailed(files))
    }

    fn read_file(args: ReadFileArgs) -> Result<FileText, Error> {
        let repository = Repository::parse(&args.repo)?;
        let path = encoded_path(&args.path)?;
        let reference = args.ref_.map(|name| format!("?ref={}", encoded(&name))).unwrap_or_default();
        let response = Api::from_environment()?.raw(&format!("/repos/{repository}/contents/{path}{reference}"), MAX_FILE)?;
        // Of a folder the server sends a list, as plain JSON, whatever was asked for.
        if response.header("content-type").is_some_and(|media| media.starts_with("application/json")) {
            return Err(Error::Invalid(format!("{} is a folder, not a file", args.path)));
        }
        if response.body.contains(&0) {
            return Err(Error::Invalid(format!("{} is a binary file", args.path)));
        }
        Ok(FileText {
            text: String::from_utf8_lossy(&response.body).into_owned(),
            truncated: response.truncated,
        })
    }
}

export!(Github);
