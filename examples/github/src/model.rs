//! What of GitHub's answers is used, and how it becomes what the interface promises.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::exports::ambit::github::repositories::{self as wit, IssueDetail};

/// Bytes of one text, such as an issue's; a model has no use for more.
const MAX_TEXT: usize = 32 * 1024;
const MAX_COMMENT: usize = 4 * 1024;

#[derive(Deserialize)]
pub struct User {
    login: String,
}

#[derive(Deserialize)]
pub struct Label {
    name: String,
}

#[derive(Deserialize)]
pub struct Issue {
    number: u32,
    title: String,
    state: String,
    user: Option<User>,
    labels: Vec<Label>,
    pub comments: u32,
    created_at: String,
    updated_at: String,
    body: Option<String>,
    /// There only where the issue is a pull request.
    pub pull_request: Option<IgnoredAny>,
}

impl Issue {
    pub fn listed(self) -> wit::Issue {
        wit::Issue {
            number: self.number,
            title: self.title,
            author: login(self.user),
            labels: names(self.labels),
            comments: self.comments,
            updated: self.updated_at,
        }
    }

    pub fn detailed(self, comments: Vec<Comment>) -> IssueDetail {
        IssueDetail {
            number: self.number,
            title: self.title,
            state: self.state,
            author: login(self.user),
            labels: names(self.labels),
            created: self.created_at,
            text: shortened(self.body, MAX_TEXT),
            comments: comments.into_iter().map(Comment::shown).collect(),
            comment_count: self.comments,
        }
    }
}

#[derive(Deserialize)]
pub struct Comment {
    user: Option<User>,
    created_at: String,
    body: Option<String>,
}

impl Comment {
    fn shown(self) -> wit::Comment {
        wit::Comment {
            author: login(self.user),
            created: self.created_at,
            text: shortened(self.body, MAX_COMMENT),
        }
    }
}

#[derive(Deserialize)]
pub struct Branch {
    #[serde(rename = "ref")]
    name: String,
    /// With its owner before it, `octo:main`: what tells a fork's branch from the repository's own.
    label: Option<String>,
}

impl Branch {
    fn shown(self) -> String {
        self.label.unwrap_or(self.name)
    }
}

#[derive(Deserialize)]
pub struct Pull {
    number: u32,
    title: String,
    state: String,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    merged: bool,
    user: Option<User>,
    base: Branch,
    head: Branch,
    body: Option<String>,
    additions: u32,
    deletions: u32,
    changed_files: u32,
}

impl Pull {
    pub fn detailed(self, files: Vec<ChangedFile>) -> wit::Pull {
        let state = match (self.merged, self.draft && self.state == "open") {
            (true, _) => "merged".into(),
            (false, true) => "draft".into(),
            (false, false) => self.state,
        };
        wit::Pull {
            number: self.number,
            title: self.title,
            state,
            author: login(self.user),
            base: self.base.shown(),
            head: self.head.shown(),
            text: shortened(self.body, MAX_TEXT),
            additions: self.additions,
            deletions: self.deletions,
            files: files.into_iter().map(ChangedFile::shown).collect(),
            file_count: self.changed_files,
        }
    }
}

#[derive(Deserialize)]
pub struct ChangedFile {
    filename: String,
    status: String,
    additions: u32,
    deletions: u32,
}

impl ChangedFile {
    fn shown(self) -> wit::ChangedFile {
        wit::ChangedFile {
            path: self.filename,
            status: self.status,
            additions: self.additions,
            deletions: self.deletions,
        }
    }
}

fn login(user: Option<User>) -> Option<String> {
    user.map(|user| user.login)
}

fn names(labels: Vec<Label>) -> Vec<String> {
    labels.into_iter().map(|label| label.name).collect()
}

fn shortened(text: Option<String>, max: usize) -> String {
    let mut text = text.unwrap_or_default();
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push_str("\n… the rest was left out");
    }
    text
}
