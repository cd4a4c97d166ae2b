use fast_glob::glob_match;
use wasip2::filesystem::types::DescriptorType;
use workspace_files::{Path, Walk, Workspace};

use crate::MAX_ANSWER;
use crate::exports::ambit::workspace::reading::{FindArgs, FindResult};

const DEFAULT_LIMIT: u32 = 200;
const MAX_LIMIT: u32 = 5000;

pub fn find(workspace: &Workspace, args: &FindArgs) -> Result<FindResult, String> {
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize;
    let mut walk = Walk::new(workspace, &Path::parse_or_root(args.path.as_deref())?)?;
    let mut paths = Vec::new();
    let mut size = 0;
    while let Some(found) = walk.step() {
        if found.path.is_root() || !matches_glob(&args.glob, &found.path) {
            continue;
        }
        size += found.path.as_str().len();
        if paths.len() == limit || size > MAX_ANSWER {
            return Ok(FindResult { paths, truncated: true });
        }
        let slash = if found.kind == DescriptorType::Directory { "/" } else { "" };
        paths.push(format!("{}{slash}", found.path.as_str()));
    }
    Ok(FindResult {
        paths,
        truncated: walk.cut_short,
    })
}

/// A glob without a slash means the name, wherever it is; one with a slash means the whole path.
pub fn matches_glob(glob: &str, path: &Path) -> bool {
    let glob = glob.trim_start_matches("./").trim_start_matches('/');
    let subject = if glob.trim_end_matches('/').contains('/') {
        path.as_str()
    } else {
        path.name()
    };
    glob_match(glob.trim_end_matches('/'), subject)
}
