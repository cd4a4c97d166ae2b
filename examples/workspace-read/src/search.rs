use regex_lite::{Regex, RegexBuilder};
use wasip2::filesystem::types::DescriptorType;
use workspace_files::{Path, Walk, Workspace, is_binary};

use crate::MAX_ANSWER;
use crate::exports::ambit::workspace::reading::{FileMatches, Line, SearchArgs, SearchResult};
use crate::find::matches_glob;
use crate::read::cut_at;

const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;

/// Bytes of one line that are shown.
const MAX_LINE: usize = 400;

pub fn search(workspace: &Workspace, args: &SearchArgs) -> Result<SearchResult, String> {
    let pattern = compiled(args)?;
    let mut left = Budget {
        lines: args.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize,
        bytes: MAX_ANSWER,
    };
    let mut walk = Walk::new(workspace, &Path::parse_or_root(args.path.as_deref())?)?;
    let mut files = Vec::new();
    while let Some(found) = walk.step() {
        let wanted = args.glob.as_deref().is_none_or(|glob| matches_glob(glob, &found.path));
        if found.kind != DescriptorType::RegularFile || !wanted {
            continue;
        }
        // A file that is too large or can't be read is passed over: one such file must not hide what the others hold.
        let Ok(bytes) = workspace.bytes(&found.path) else { continue };
        if is_binary(&bytes) {
            continue;
        }
        let (lines, complete) = matching_lines(&pattern, &String::from_utf8_lossy(&bytes), &mut left);
        if !lines.is_empty() {
            files.push(FileMatches {
                path: found.path.as_str().into(),
                lines,
            });
        }
        if !complete {
            return Ok(SearchResult { files, truncated: true });
        }
    }
    Ok(SearchResult {
        files,
        truncated: walk.cut_short,
    })
}

struct Budget {
    lines: usize,
    bytes: usize,
}

/// The lines that match, and whether the budget was enough for all of them.
fn matching_lines(pattern: &Regex, text: &str, left: &mut Budget) -> (Vec<Line>, bool) {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if !pattern.is_match(line) {
            continue;
        }
        let mut text = line.to_string();
        if cut_at(&mut text, MAX_LINE) {
            text.push('…');
        }
        if left.lines == 0 || left.bytes < text.len() {
            return (lines, false);
        }
        left.lines -= 1;
        left.bytes -= text.len();
        lines.push(Line {
            number: index as u32 + 1,
            text,
        });
    }
    (lines, true)
}

fn compiled(args: &SearchArgs) -> Result<Regex, String> {
    RegexBuilder::new(&args.pattern)
        .case_insensitive(args.ignore_case.unwrap_or(false))
        .build()
        .map_err(|error| format!("The pattern is not a regular expression that this tool takes: {error}."))
}
