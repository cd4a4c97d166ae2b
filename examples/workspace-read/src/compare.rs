use similar::TextDiff;
use workspace_files::{Path, Workspace};

use crate::MAX_ANSWER;
use crate::exports::ambit::workspace::reading::{CompareArgs, Comparison};
use crate::read::cut_at;

/// Comparing takes time that grows with the product of lines and differences.
const MAX_LINES: usize = 50_000;

pub fn compare(workspace: &Workspace, args: &CompareArgs) -> Result<Comparison, String> {
    let (old_path, new_path) = (Path::parse(&args.old_path)?, Path::parse(&args.new_path)?);
    let (old, new) = (workspace.text(&old_path)?, workspace.text(&new_path)?);
    if old == new {
        return Ok(Comparison {
            same: true,
            diff: String::new(),
        });
    }
    let lines = old.lines().count() + new.lines().count();
    if lines > MAX_LINES {
        return Err(format!(
            "The two files have {lines} lines together, more than the {MAX_LINES} that can be compared."
        ));
    }
    let compared = TextDiff::from_lines(&old, &new);
    let mut diff = compared.unified_diff().header(old_path.as_str(), new_path.as_str()).to_string();
    if cut_at(&mut diff, MAX_ANSWER) {
        diff.push_str("\n… the rest of the difference was left out\n");
    }
    Ok(Comparison { same: false, diff })
}
