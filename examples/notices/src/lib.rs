//! Tools made of templates: each `.md` file in the mounted folder is one. Nobody knows which there are before it runs, so the component lists them itself.

wit_bindgen::generate!({ world: "changing-tools", path: "../../wit" });

mod template;

use exports::ambit::tool::changes::{self, News};
use exports::ambit::tool::untyped::{self, Answer, Content, Definition, Failure, Page};
use std::cell::RefCell;
use template::Template;
use wasip2::clocks::monotonic_clock::subscribe_duration;
use workspace_files::{Path, Workspace};

struct Notices;

const EXTENSION: &str = ".md";

/// How often the folder is looked at for changes.
const LOOK_EVERY_NS: u64 = 2_000_000_000;

/// Every template with its tool's name, sorted by it.
fn templates() -> Result<Vec<(String, String)>, String> {
    let workspace = Workspace::open()?;
    let entries = workspace.entries(&Path::root())?;
    let files = entries.iter().filter_map(|entry| entry.name.strip_suffix(EXTENSION).map(|name| (name.to_string(), &entry.name)));
    files.map(|(name, file)| Ok((name, workspace.text(&Path::parse(file)?)?))).collect()
}

impl untyped::Guest for Notices {
    fn list_tools(_cursor: Option<String>) -> Result<Page, String> {
        let mut tools = Vec::new();
        for (name, text) in templates()? {
            let template = Template::parse(&text).map_err(|why| format!("{name}{EXTENSION}: {why}"))?;
            tools.push(Definition {
                name,
                title: template.title.clone(),
                description: template.description.clone(),
                input_schema: template.input_schema(),
                output_schema: None,
                annotations: Some(r#"{"readOnlyHint":true}"#.into()),
            });
        }
        Ok(Page { server: None, instructions: None, ttl_ms: None, tools, next_cursor: None })
    }

    fn call_tool(name: String, arguments: String, _input_schema: String) -> Result<Answer, Failure> {
        let found = templates().map_err(Failure::Unavailable)?.into_iter().find(|(one, _)| *one == name);
        let (_, text) = found.ok_or(Failure::UnknownTool)?;
        let filled = Template::parse(&text).and_then(|template| template.fill(&arguments));
        let is_error = filled.is_err();
        let text = filled.unwrap_or_else(|why| why);
        Ok(Answer { content: vec![Content::Text(text)], structured: None, is_error })
    }
}

thread_local! {
    static SEEN: RefCell<Option<Vec<(String, String)>>> = const { RefCell::new(None) };
}

impl changes::Guest for Notices {
    fn watch() -> Result<News, String> {
        loop {
            let now = templates()?;
            let before = SEEN.with_borrow_mut(|seen| seen.replace(now.clone()));
            // Nothing was seen before: whatever changes from now on is noticed.
            if before.is_none_or(|before| before != now) {
                return Ok(News::Changed);
            }
            subscribe_duration(LOOK_EVERY_NS).block();
        }
    }
}

export!(Notices);
