use workspace_files::{Path, Workspace};

use crate::MAX_ANSWER;
use crate::exports::ambit::workspace::reading::{FileText, ReadArgs};

const DEFAULT_LINES: u32 = 2000;

pub fn read(workspace: &Workspace, args: &ReadArgs) -> Result<FileText, String> {
    let path = Path::parse(&args.path)?;
    let text = workspace.text(&path)?;
    let total = text.lines().count() as u32;
    let start = args.start_line.unwrap_or(1).max(1);
    if start > total.max(1) {
        return Err(format!("{path} has {total} lines; there is no line {start}."));
    }
    let wanted = args.line_count.unwrap_or(DEFAULT_LINES) as usize;
    let mut kept = String::new();
    let mut count = 0;
    for line in text.split_inclusive('\n').skip(start as usize - 1).take(wanted) {
        if count > 0 && kept.len() + line.len() > MAX_ANSWER {
            break;
        }
        kept.push_str(line);
        count += 1;
    }
    let cut = cut_at(&mut kept, MAX_ANSWER);
    Ok(FileText {
        text: kept,
        start_line: start,
        total_lines: total,
        truncated: cut || start - 1 + count < total,
    })
}

/// Shortens a text to at most so many bytes, between two characters. Tells whether it had to.
pub fn cut_at(text: &mut String, max: usize) -> bool {
    if text.len() <= max {
        return false;
    }
    text.truncate(text.floor_char_boundary(max));
    true
}
